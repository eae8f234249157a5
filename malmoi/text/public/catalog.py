"""All public sources by name."""

import difflib

from malmoi.errors import InputError
from malmoi.text.public import (
    boddari_tales,
    chatbot,
    curse_detection,
    goemotions_ko,
    hgtods,
    johngrib_notes,
    kmhas,
    korean_folktales,
    korean_hate_speech,
    korean_safety,
    korsts,
    kote,
    malicious_comments,
    national_petitions,
    naver_movies,
    naver_shopping,
    nsmc,
    nsmc_rated,
    okt_tweets,
    petition_titles,
    petitions,
    president_speeches,
    question_pair,
    steam,
)
from malmoi.text.public.description import PublicSource

_MODULES = (
    *(nsmc, nsmc_rated, kote, korean_hate_speech, kmhas, naver_shopping, steam),
    *(korsts, question_pair, chatbot, petitions),
    *(goemotions_ko, korean_safety, hgtods, curse_detection, malicious_comments),
    *(okt_tweets, boddari_tales, korean_folktales, johngrib_notes),
    *(petition_titles, national_petitions, president_speeches, naver_movies),
)

SOURCES: dict[str, PublicSource] = {module.SOURCE.name: module.SOURCE for module in _MODULES}


def find_source(name: str) -> PublicSource:
    """The source of that name.

    Raises:
        InputError: there is none.
    """
    if name in SOURCES:
        return SOURCES[name]
    close = difflib.get_close_matches(name.lower().replace("-", "_"), SOURCES, n=1)
    hint = f"did you mean {close[0]}?" if close else "malmoi list shows them"
    raise InputError(
        f"expected the name of a public source ({', '.join(SOURCES)}) or hub:OWNER/NAME, "
        f"found {name!r}; {hint}"
    )
