"""The field by which a model is chosen for a project, when it is made and later."""

from collections.abc import Mapping

import streamlit as st

from malmoi.app.found_models import short_name
from malmoi.app.language import say

# Not None, which to Streamlit is a field in which nothing was chosen.
_NONE = ""


def choose_model(
    names: Mapping[str, str], now: str | None, *, key: str, disabled: bool = False
) -> str | None:
    """Draw the field; the name that is chosen, or None. Nothing where there is nothing to choose.

    Args:
        names: of the models that know labels of the project, with what they are shown as; no
            other can be chosen.
        now: the one that is chosen, which may be gone.
        key: of the field.
        disabled: for who may not change it.
    """
    known = [_NONE, *names]
    if now is not None and now not in names:
        known.append(now)
    if len(known) == 1:
        return None
    chosen = st.selectbox(
        say(
            "처음부터 제안할 모델",
            "Model that suggests from the start",
        ),
        known,
        index=known.index(now or _NONE),
        format_func=lambda name: _shown(name, names),
        key=key,
        disabled=disabled,
        help=say(
            "라벨이 모여 스스로 배우기 전까지 이 모델이 제안합니다. 그 뒤에는 둘 가운데 F1이 높은 "
            "쪽이 제안합니다. 이 작업과 라벨이 두 개 이상 같은 모델만 고를 수 있습니다.",
            "It suggests until enough is labelled to learn from; after that whichever has the "
            "higher F1. It must have at least two labels of this project.",
        ),
    )
    return chosen if chosen in known and chosen != _NONE else None


def _shown(name: str, names: Mapping[str, str]) -> str:
    if name == _NONE:
        return say("없음", "None")
    if name in names:
        return names[name]
    short = short_name(name)
    return say(f"{short} (지금은 쓸 수 없음)", f"{short} (not usable now)")
