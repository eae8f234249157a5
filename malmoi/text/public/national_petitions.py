"""Petitions to the Blue House with their titles: of four days, and those that it answered."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

_URL = (
    "https://raw.githubusercontent.com/gyunggyung/National-Petition/"
    "8d04e5d561d5133e03282ab7374f79796ae63d35/"
)
_FILES = (
    # path there, bytes, SHA-256
    (
        *("See_recommendat_ons_of_daily_sake/2019_01_12_petition.csv", 3_659_765),
        "7d1f95e037690d7d87c1313402f9a8ca6b92a78f1078a50dd4290c41c0849967",
    ),
    (
        *("Approval-Rating-Analysis/briefing.csv", 945_243),
        "6f4d6995c0b2037510b08f71a2e2ec72c8a8fd3b17f3af2e801f0c79d125c341",
    ),
)

SOURCE = PublicSource(
    name="national_petitions",
    about="petitions to the Blue House of 11 to 14 December 2018, and 68 that it answered",
    homepage="https://github.com/gyunggyung/National-Petition",
    licence="public record (KOGL)",
    licence_note=(
        "the repository, which collected them from the Blue House's pages, says Apache 2.0"
    ),
    citation="gyunggyung (2019). https://github.com/gyunggyung/National-Petition",
    labels="the category that the petitioner chose, such as 육아/교육",
    texts=4_732,
    # [mirror]: sizes and SHA-256 of the files in the repository at that commit. Its other days
    # could not be had here.
    files=tuple(
        RemoteFile(
            name=path.rsplit("/", 1)[-1],
            url=_URL + path,
            sha256=sha256,
            size=size,
            layout=Layout(texts=("title", "petition_overview"), label="category"),
        )
        for path, size, sha256 in _FILES
    ),
)
