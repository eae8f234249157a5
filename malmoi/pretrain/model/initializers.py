"""First weights as the paper's code draws them."""

from torch import nn
from transformers import ElectraForPreTraining

from malmoi.pretrain.model.networks import ElectraPair

# Standard deviations beyond which TensorFlow's truncated_normal_initializer draws again.
_CUT = 2.0


def draw_as_papers_code(pair: ElectraPair) -> None:
    """Draw all weights of new networks again; biases and LayerNorms stay as they begin.

    google-research/electra: a truncated normal distribution of `initializer_range`
    (model/modeling.py, create_initializer), but Glorot's uniform one where `tf.layers.dense` is
    given no initializer: the embeddings' projection (model/modeling.py, BertModel) and the last
    layer of the discriminator's head (run_pretraining.py, _get_discriminator_output).
    """
    deviation = pair.discriminator.config.initializer_range
    glorot: set[int] = set()
    for network in pair.networks().values():
        if hasattr(network.electra, "embeddings_project"):  # where the widths differ
            glorot.add(id(network.electra.embeddings_project.weight))
        if isinstance(network, ElectraForPreTraining):
            glorot.add(id(network.discriminator_predictions.dense_prediction.weight))
    drawn: set[int] = set()
    for module in pair.modules():
        weight = getattr(module, "weight", None)
        # What networks share is drawn once.
        if not isinstance(module, nn.Linear | nn.Embedding) or id(weight) in drawn:
            continue
        drawn.add(id(weight))
        if id(weight) in glorot:
            nn.init.xavier_uniform_(module.weight)
        else:
            cut = _CUT * deviation
            nn.init.trunc_normal_(module.weight, std=deviation, a=-cut, b=cut)
