"""Every row of the comparison that `--baselines` makes: what an encoder has to beat.

A new classifier is a function like those of `classic`, a name here, and what the page calls it.
A chat model is asked by `llm`, and goes by its own name.
"""

from malmoi.finetune.baselines.classic import (
    Classifying,
    character_svm,
    majority,
    morpheme_regression,
)

# What the run itself is about.
MODEL = "this model: encoder and linear model"
ENCODER = "this encoder"
# What needs no encoder and no endpoint, in the order of measuring.
CLASSICAL: dict[str, Classifying] = {
    "majority label": majority,
    "characters, SVM": character_svm,
    "morphemes, logistic regression": morpheme_regression,
}
# What pre-training adds.
RANDOM_WEIGHTS = "the same encoder, random weights"

# The page is read by labelling teams.
KOREAN = {
    MODEL: "이 모델",
    ENCODER: "이 모델",
    "majority label": "다수결",
    "characters, SVM": "글자 n-gram, 선형 SVM",
    "morphemes, logistic regression": "형태소, 로지스틱 회귀",
    RANDOM_WEIGHTS: "같은 인코더, 무작위 가중치",
}
