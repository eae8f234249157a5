"""The page "모델": what models there are, how good, which to use; training another."""

import importlib
from datetime import datetime
from pathlib import Path

import pandas as pd
import streamlit as st

from malmoi.app.charts import confusion, label_scores
from malmoi.app.found_models import available_models, distinct_names, is_run, model_name
from malmoi.app.language import say
from malmoi.app.model_choice import (
    choose_name,
    show_missing_model,
    tell_better,
    use_model,
)
from malmoi.app.model_report import FoldReport, card, compared, fold_report, labels_of
from malmoi.app.row_choice import choose_row
from malmoi.app.sections import choose_section
from malmoi.app.visit import Visit
from malmoi.inference.paired_runs import PairedRuns
from malmoi.messages import Phrase
from malmoi.model_folders import is_linear_alone

_SECTIONS = {
    "models": (Phrase("Models"), "neurology"),
    "compare": (Phrase("Compare"), "compare"),
    "train": (Phrase("Train ELECTRA"), "model_training"),
    "curve": (Phrase("Learning while labelling"), "show_chart"),
}
_HALF = 396  # pixels: half of a page 1280 wide, less the sidebar


def show(visit: Visit) -> None:
    models = available_models()
    chosen = choose_name(models, visit) if models else None
    section = choose_section("section", _SECTIONS)
    if section == "models":
        _show_models(models, chosen)
    elif section == "compare":
        _show_comparison(models)
    elif section == "train":
        # What starts processes is imported where somebody wants to.
        importlib.import_module("malmoi.app.views.training").show_training(visit)
    elif (open_project := visit.needs_project()) is not None:
        importlib.import_module("malmoi.app.learning.curve").draw_curve(open_project)


def _show_models(models: list[Path], chosen: Path | None) -> None:
    if chosen is None:
        show_missing_model()
        return
    names = distinct_names(models)
    reports = {path: fold_report(path) for path in models}
    row = choose_row(
        pd.DataFrame(
            [_row(path, names[model_name(path)], reports[path], path == chosen) for path in models]
        ),
        key="models_table",
        columns={
            "F1": st.column_config.NumberColumn(format="%.3f"),
            say("Number of texts"): st.column_config.NumberColumn(format="localized"),
        },
    )
    path = chosen if row is None else models[row]
    _show_model(path, names[model_name(path)], reports[path], in_use=path == chosen)
    tell_better(path, models)
    _show_report(reports[path])
    if text := card(path):
        with st.expander(say("Model card"), icon=":material/description:"):
            st.text(text)


def _row(path: Path, name: str, report: FoldReport | None, chosen: bool) -> dict[str, object]:
    return {
        say("Used"): "✓" if chosen else "",
        say("Model"): name,
        "F1": None if report is None else report.f1,
        say("95% interval"): ("" if report is None else _interval(report)),
        say("Number of texts"): None if report is None else report.texts,
        say("Kind"): _kind(path),
        say("Labels"): ", ".join(labels_of(path)),
        say("Made"): _made(path),
    }


def _interval(report: FoldReport) -> str:
    if not report.is_sure:
        return say("unknown")
    return f"{report.low:.2f}–{report.high:.2f}"


def _kind(path: Path) -> str:
    if is_linear_alone(path):
        return say("Linear")
    return say("Fine-tuned") if is_run(path) else say("Released")


def _made(path: Path) -> str:
    """When a run was finished; a released model came with the repository."""
    try:
        moment = datetime.fromtimestamp((path.parent / "report.json").stat().st_mtime)
    except OSError:
        return ""
    return f"{moment:%m-%d %H:%M}"


def _show_model(path: Path, name: str, report: FoldReport | None, *, in_use: bool) -> None:
    title, button = st.columns([2, 1], vertical_alignment="bottom")
    if report is None:
        title.text(f"{name}\n" + say("It has no report of folds."))
    else:
        title.text(
            f"{name}\n"
            + say(
                "Cross-validated F1 {f1:.3f} (95% interval {interval}), {texts:,} texts",
                f1=report.f1,
                interval=_interval(report),
                texts=report.texts,
            )
        )
    button.button(
        say("In use") if in_use else say("Use this model"),
        type="secondary" if in_use else "primary",
        disabled=in_use,
        on_click=use_model,
        args=(model_name(path),),
        icon=":material/check:",
        width="stretch",
        key="use_model",
    )


def _show_report(report: FoldReport | None) -> None:
    if report is None or not report.labels:
        return
    # Beside each other where there is room, else one below the other.
    row = st.container(horizontal=True)
    scores, mistakes = (row.container(width=_HALF) for _ in range(2))
    with scores:
        st.caption(say("Scores by label"))
        st.dataframe(
            pd.DataFrame(
                {
                    say("Label"): list(report.labels),
                    "F1": [one.f1 for one in report.labels.values()],
                    say("Precision"): [one.precision for one in report.labels.values()],
                    say("Recall"): [one.recall for one in report.labels.values()],
                    say("Number of texts"): [one.texts for one in report.labels.values()],
                }
            ),
            hide_index=True,
            width="stretch",
            column_config={
                name: st.column_config.NumberColumn(format="%.3f")
                for name in ("F1", say("Precision"), say("Recall"))
            },
        )
    with mistakes:
        if report.confusion:
            st.caption(say("What was taken for what (texts)"))
            names = list(report.labels)
            cells = [
                (given, predicted, texts)
                for given, row_of_label in zip(names, report.confusion, strict=False)
                for predicted, texts in zip(names, row_of_label, strict=False)
            ]
            frame = pd.DataFrame(cells, columns=["row", "column", "number"])
            st.altair_chart(
                confusion(frame, say("Given"), say("Predicted"), names),
                width="stretch",
                alt=say("Confusion matrix"),
            )


def _show_comparison(models: list[Path]) -> None:
    known = [path for path in models if fold_report(path) is not None]
    if len(known) < 2:
        st.info(
            say("It takes two models to compare. Make another by ‘Train ELECTRA’."),
            icon=":material/compare:",
        )
        return
    names, paths = distinct_names(known), {model_name(path): path for path in known}
    left, right = st.columns(2)
    first = left.selectbox(
        say("First model"),
        list(paths),
        format_func=names.__getitem__,
        key="compare_first",
    )
    one = paths[first]
    others = [
        name
        for name, path in paths.items()
        if name != first and set(labels_of(path)) == set(labels_of(one))
    ]
    if not others:
        st.info(say("There is no other model of the same labels."), icon=":material/compare:")
        return
    second = right.selectbox(
        say("Second model"),
        others,
        format_func=names.__getitem__,
        key="compare_second",
    )
    _show_two({names[first]: one, names[second]: paths[second]})


def _show_two(paths: dict[str, Path]) -> None:
    reports = {
        name: report for name, path in paths.items() if (report := fold_report(path)) is not None
    }
    first, second = reports.values()
    st.dataframe(
        pd.DataFrame(
            {
                say("Model"): list(reports),
                "F1": [report.f1 for report in reports.values()],
                say("95% interval"): [_interval(report) for report in reports.values()],
                say("Number of texts"): [report.texts for report in reports.values()],
            }
        ),
        hide_index=True,
        width="stretch",
        column_config={
            "F1": st.column_config.NumberColumn(format="%.3f"),
            say("Number of texts"): st.column_config.NumberColumn(format="localized"),
        },
    )
    if first.data != second.data or not first.data:
        st.caption(
            say(
                "They were scored on different texts. Easier texts give higher scores, so take "
                "the comparison as a rough one."
            ),
        )
    elif (paired := compared(*paths.values())) is not None:
        st.caption(_paired(paired))
    elif first.low > second.high or second.low > first.high:
        st.caption(say("Scored on the same texts; the intervals do not overlap."))
    else:
        st.caption(say("Scored on the same texts. The intervals overlap, so it may be chance."))
    if first.labels and second.labels:
        scores = [
            (label, name, score.f1)
            for name, report in reports.items()
            for label, score in report.labels.items()
        ]
        st.altair_chart(
            label_scores(pd.DataFrame(scores, columns=["label", "model", "f1"]), list(reports)),
            width="stretch",
            alt=say("F1 by label"),
        )


def _paired(found: PairedRuns) -> str:
    difference = found.second_f1 - found.first_f1
    interval = f"{found.low:+.3f} ~ {found.high:+.3f}"
    verdict = say("That is hardly chance.") if found.is_sure else say("It may be chance.")
    return say(
        "{texts:text} compared one by one. The macro F1 over all texts of the second is "
        "{difference:+.3f} (95% interval {interval}). {verdict} Right alone: the first of "
        "{first_alone:,} texts, the second of {second_alone:,}.",
        texts=found.texts,
        difference=difference,
        interval=interval,
        verdict=verdict,
        first_alone=found.first_alone,
        second_alone=found.second_alone,
    )
