"""ChatbotData: short everyday questions and answers."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

SOURCE = PublicSource(
    name="chatbot",
    about="11,823 short everyday sentences and the answers to them, each a text",
    homepage="https://github.com/songys/Chatbot_data",
    licence="MIT",
    citation=(
        "Youngsook Song (2018). Chatbot_data_for_Korean v1.0. "
        "https://github.com/songys/Chatbot_data"
    ),
    labels="the topic of the exchange: 0 -> 일상다반사, 1 -> 이별(부정), 2 -> 사랑(긍정)",
    texts=23_646,
    files=(
        # [tfds] and [mirror].
        RemoteFile(
            name="ChatbotData.csv",
            url=(
                "https://raw.githubusercontent.com/songys/Chatbot_data/"
                "a22e508811b5040eead0be5a89c27ef3780d4e82/ChatbotData%20.csv"
            ),
            sha256="287eb129695b577321c80ad397bb3c2279164d4ca577874d129fd3db5b30afe2",
            size=889_842,
            layout=Layout(
                texts=("Q", "A"),
                label="label",
                names=label_names({"0": "일상다반사", "1": "이별(부정)", "2": "사랑(긍정)"}),
            ),
        ),
    ),
)
