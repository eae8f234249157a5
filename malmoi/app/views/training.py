"""The part of the page "모델" that trains: start, progress, cancel, what became of it."""

import time

import streamlit as st

from malmoi.app.explanation import explain, for_visitors
from malmoi.app.found_models import available_models, model_name
from malmoi.app.language import number_of, say
from malmoi.app.model_choice import MODEL, use_model
from malmoi.app.model_report import fold_report
from malmoi.app.training_job import TrainingJob, start_again, start_training, training_jobs
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError

_SECONDS_TO_LOOK_AGAIN = 3.0
_LINES_SHOWN = 15
_UNITS = {"s": "초", "min": "분", "h": "시간", "days": "일"}


def show_training(visit: Visit) -> None:
    """Draw it for the open project."""
    open_project = visit.needs_project()
    if open_project is None:
        return
    if not open_project.allows("reviewer"):
        st.info(
            say(
                "검수자나 관리자만 모델을 학습시킬 수 있습니다.",
                "Only reviewers and admins can train a model.",
            ),
            icon=":material/lock:",
        )
        return
    jobs = training_jobs(open_project.access)
    if jobs and jobs[0].status() == "running":
        st.fragment(_show_running, run_every=_SECONDS_TO_LOOK_AGAIN)(jobs[0])
        return
    _show_start(open_project)
    if jobs:
        st.divider()
        _show_ended(open_project, jobs[0])


def _show_start(open_project: OpenProject) -> None:
    st.caption(
        say(
            "이 작업의 라벨로 ELECTRA를 5겹 교차 검증으로 재고, 모든 라벨로 한 번 더 학습해 모델을 "
            "만듭니다. 라벨마다 글이 5건 이상 있어야 하고, 글 1,000건이면 보통 수십 분이 걸립니다. "
            "앱을 닫아도 계속됩니다.",
            "ELECTRA is measured by 5-fold cross-validation on the labels of this project, then "
            "trained once more on all of them. Every label needs 5 texts; 1,000 texts take some "
            "tens of minutes. It goes on when the app is closed.",
        )
    )
    is_one = open_project.project.kind == "single"
    train, quick, _ = st.columns([1, 1, 1])
    wanted: bool | None = None
    if train.button(
        say("ELECTRA 학습", "Train ELECTRA"),
        type="primary",
        icon=":material/model_training:",
        width="stretch",
        key="train",
    ):
        wanted = False
    if quick.button(
        say("빠른 모델 (1분)", "Quick model (1 minute)"),
        icon=":material/bolt:",
        width="stretch",
        help=say(
            "선형 모델만 만듭니다. 라벨이 적을 때는 ELECTRA에 못지않습니다.",
            "The linear model only. With few labels it is as good as ELECTRA.",
        )
        if is_one
        else say(
            "글 하나에 라벨이 하나인 작업에서만 만들 수 있습니다.",
            "For projects of exactly one label a text only.",
        ),
        key="train_quick",
        disabled=not is_one,
    ):
        wanted = True
    if wanted is None:
        return
    try:
        start_training(open_project.access, quick=wanted)
    except (InputError, OSError) as error:
        explain(
            say("학습을 시작할 수 없습니다.", "The training cannot be started."),
            error if isinstance(error, InputError) else InputError(str(error)),
        )
        return
    st.rerun()


def _show_running(job: TrainingJob) -> None:
    if job.status() != "running":
        st.rerun()
    minutes = (time.time() - job.started_at) / 60
    progress = job.progress()
    started = say(
        f"{minutes:.0f}분째 학습 중입니다.", f"Training for {number_of(round(minutes), 'minute')}."
    )
    if progress is None or not progress.total:
        st.progress(0.0, text=say(f"{started} 준비하고 있습니다…", f"{started} Preparing…"))
    else:
        share = min(1.0, progress.done / progress.total)
        st.progress(
            share,
            text=say(
                f"{started} {progress.total:,}단계 가운데 {progress.done:,}단계 ({share:.0%})",
                f"{started} {progress.done:,} of {progress.total:,} steps ({share:.0%})",
            ),
        )
        if progress.left:
            left = shown_span(progress.left)
            st.caption(say(f"남은 시간: 약 {left}", f"About {left} left"))
    with st.expander(say("학습 기록", "Log")):
        st.code(
            for_visitors("\n".join(job.said()[-_LINES_SHOWN:])) or "…",
            language=None,
            wrap_lines=True,
        )
    if st.button(say("그만두기", "Cancel"), icon=":material/stop_circle:", key="cancel_training"):
        job.cancel()
        st.caption(
            say(
                "멈추고 있습니다. 끝난 폴드는 남습니다. 다시 누르면 바로 끝냅니다.",
                "It is stopping; finished folds are kept. Press again to end it at once.",
            )
        )


def _show_ended(open_project: OpenProject, job: TrainingJob) -> None:
    status = job.status()
    if status == "done":
        _offer(job)
    else:
        lines = job.said()
        if status == "failed":
            st.error(
                say(
                    "마지막 학습이 실패했습니다. 마지막 줄:",
                    "The last training failed. Its last line:",
                )
            )
            st.code(for_visitors(lines[-1]) if lines else "—", language=None, wrap_lines=True)
        else:
            st.warning(
                say("마지막 학습을 그만두었습니다.", "The last training was cancelled."),
                icon=":material/stop_circle:",
            )
        if st.button(
            say("이어서 학습", "Go on"),
            icon=":material/restart_alt:",
            help=say(
                "같은 명령을 다시 줍니다. 그사이 라벨이 바뀌지 않았으면 끝난 폴드는 건너뜁니다.",
                "Gives the same command again. Finished folds are kept unless labels changed.",
            ),
            key="train_again",
        ):
            try:
                start_again(open_project.access, job)
            except (InputError, OSError) as error:
                explain(
                    say("다시 시작할 수 없습니다.", "It cannot be started again."),
                    error if isinstance(error, InputError) else InputError(str(error)),
                )
                return
            st.rerun()
    with st.expander(say("학습 기록", "Log")):
        st.code(for_visitors("\n".join(job.said()[-100:])) or "—", language=None, wrap_lines=True)


def shown_span(span: str) -> str:
    """A span of time as `malmoi.progress.duration` has it, such as "3.5 h", in the page's words."""
    number, _, unit = span.partition(" ")
    return say(f"{number}{_UNITS[unit]}" if unit in _UNITS else span, span)


def _offer(job: TrainingJob) -> None:
    made = job.model.resolve()
    found = next((path for path in available_models() if path.resolve() == made), None)
    st.success(
        say("학습이 끝났습니다. 새 모델:", "The training is done. The new model:"),
        icon=":material/check_circle:",
    )
    st.text(job.name)
    if (report := fold_report(job.model)) is not None:
        st.caption(
            say(
                f"교차 검증 F1 {report.f1:.2f} (글 {report.texts:,}건, 1에 가까울수록 잘 맞힙니다)",
                f"Cross-validated F1 {report.f1:.2f} (on {number_of(report.texts, 'text')}; 1 is "
                "perfect)",
            )
        )
    if found is None:
        st.caption(
            say(
                "글 하나에 라벨이 여러 개인 모델은 앱에서 쓸 수 없고, `malmoi predict`로 씁니다.",
                "A model of several labels a text is used by `malmoi predict`, not in the app.",
            )
        )
        return
    in_use = st.session_state.get(MODEL) == model_name(found)
    st.button(
        say("이 모델 쓰기", "Use this model"),
        type="primary",
        icon=":material/check:",
        on_click=use_model,
        args=(model_name(found),),
        disabled=in_use,
        key="use_new_model",
    )
    if in_use:
        st.caption(
            say(
                "이제 ‘한 건 분류’와 ‘파일 분류’가 이 모델로 분류합니다. 라벨을 붙일 때 제안하는 "
                "모델은 ‘설정 → 진행 방식’에서 따로 고릅니다.",
                "The pages One text and File now predict with it. Which model suggests while "
                "people label is chosen apart, in Settings → Way of working.",
            )
        )
