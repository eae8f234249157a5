"""Petitions to the Blue House: long formal text."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

# All [tfds]; six of them [mirror] too. The originals are JSON lines without a suffix.
_URL = (
    "https://raw.githubusercontent.com/lovit/petitions_archive/"
    "03dc3f3d69e03a0a4885350c6991e328fc0a6b81/petitions_"
)
_MONTHS = (
    # month, bytes, SHA-256
    ("2017-08", 1_838_533, "13f09d466b6a8f5732bf5609f0799701dc397c5740d75275b5977bd9930c4729"),
    ("2017-09", 20_367_606, "7efd889a289a1667a60edfe6eb5800904885552cbeb094d6098207c102a0f28c"),
    ("2017-10", 11_988_849, "da5eb9f672e82902e34acfb4bdb396691f11ea48c75dc67ed4ad2e36e387d009"),
    ("2017-11", 28_385_442, "368f9135ac713d319c49c8b87ee7a8d76294de87dd7b48a96b8abbe259cf0b7b"),
    ("2017-12", 29_042_016, "a7b855226f06b0d43e499a19b85f3327519489e4e049b0e3f78a0e975b4ffbde"),
    ("2018-01", 43_887_779, "ccf564cd45276e34b07c9192d6e92943eab554a762e405e636e9438ef850e9ac"),
    ("2018-02", 33_843_037, "75ac961e765beff3ecd8247946dc1cbd361de58fff95e8eb6f79742f577f9994"),
    ("2018-03", 34_265_200, "ac7383c93dfdb8727b9a3c82b5cc5b977d7165b8d52b80561478edb5cd854568"),
    ("2018-04", 35_529_793, "54b3e395bde491accdcb9c92303cd2d83b5571fcc363eb6fc46e677f054af64b"),
    ("2018-05", 37_538_162, "356c71f46abc553ad067f71265b9b3fcdd094ed13f15e6359ba9557a20779346"),
    ("2018-06", 37_837_699, "e30a7d98ec11d334a502436347c8865d2f2e0b105b937def9e3ff5c772208ea2"),
    ("2018-07", 40_468_039, "d7222af57781f34e995ffcf9f4ba9d0f6708ac420c3086413f519bc18a6edcff"),
    ("2018-08", 39_774_497, "dd01d3f6a6fd42746e0b075c66b848a0c4a3c9b514ff4080d391124107ee7f5d"),
    ("2018-09", 36_058_757, "c0e733390aeb830f1d0aedcffc4bfefb1caa433a77cb9271841697bb041fc0e5"),
    ("2018-10", 38_117_900, "b9ede4eaa8fab0e95348098450278d46c98791de7d37bb8b4632c2b6aecf539f"),
    ("2018-11", 37_662_451, "444d6c64739c4a35e1f48c1c4efafc32feced03d10306539da8613fb0081843b"),
    ("2018-12", 33_020_291, "e6ed495522f650c0c37093aef3a1fc1cb04e82cf341a3e5a0ea4dedab1d1ef08"),
    ("2019-01", 34_828_399, "b8c8a04effcdc2deea75ddba30f84f8c92b300009b9689a9b33094b01437c5b9"),
    ("2019-02", 30_809_443, "492c4fdd71eace08c516cd7ecdce9235c0aeb2da1ebe19b829b09611c74767fd"),
    ("2019-03", 34_938_812, "abde7d58a513b6d9019a2911acc906c6ebebb04322356b9f7b9e9365f8ef8373"),
    ("2019-04", 2_036_030, "6db47ca63b0f46731ec22a2043aa55bd2928efd620bf9cc8c52726f7962b2fc0"),
    ("2019-05", 2_581_665, "624dadd3d1f8b5ed9065e7b539095990dcb1babe40fb6b9d45f3feb025f8b5a6"),
    ("2019-06", 2_139_900, "28886a963d2fabdad0e90ec2d64adf42dc0668389250fb6a4969fad968240282"),
    ("2019-07", 2_356_267, "bc15c72d2e0e15ff0b05488127841a110784168149ef17f578622c9103771e12"),
    ("2019-08", 2_471_734, "6364e84171bb4ddbc03cf1445d91e19d05bfe568baeceb0a573079092e8a5500"),
)

SOURCE = PublicSource(
    name="petitions",
    about="petitions to the Blue House by month, August 2017 to August 2019",
    homepage="https://github.com/lovit/petitions_archive",
    licence="public record (KOGL)",
    licence_note="the archive itself states no licence; Korpora lists it as CC0 1.0",
    citation=(
        "Hyunjoong Kim (2019). 청와대 국민청원 데이터 아카이브. "
        "https://github.com/lovit/petitions_archive"
    ),
    labels="the category that the petitioner chose, such as 육아/교육",
    texts=None,
    files=tuple(
        RemoteFile(
            name=f"petitions_{month}.jsonl",
            url=_URL + month,
            sha256=sha256,
            size=size,
            layout=Layout(texts=("content",), label="category"),
        )
        for month, size, sha256 in _MONTHS
    ),
)
