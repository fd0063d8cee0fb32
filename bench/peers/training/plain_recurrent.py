"""torch's own LSTM with attention, as a good tutorial writes it: padded batches, the layers' own loops over steps."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tfm.tokenizer.special import PAD_ID


class PlainRecurrent(nn.Module):
    """An LSTM that reads, an LSTM that writes, and Luong's attention after it, with its score W (`general`).

    Args:
        size: a `bench.workload.RecurrentSize` as a dict.
        longest: not needed: it counts by itself.
    """

    def __init__(self, size: dict[str, Any], longest: int) -> None:
        super().__init__()
        dim, width, self.dropout = size["dim"], size["embedding_dim"], size["dropout"]
        self.embedding = nn.Embedding(size["vocab"], width, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        shape = {"num_layers": size["layers"], "dropout": self.dropout if size["layers"] > 1 else 0.0}
        self.encoder = nn.LSTM(width, dim, batch_first=True, **shape)
        self.decoder = nn.LSTM(width, dim, batch_first=True, **shape)
        self.score, self.combine = nn.Linear(dim, dim, bias=False), nn.Linear(2 * dim, dim)
        self.narrow = nn.Linear(dim, width, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        is_padding = source == PAD_ID
        read = pack_padded_sequence(
            F.dropout(self.embedding(source), self.dropout),
            (~is_padding).sum(1).cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        packed, state = self.encoder(read)
        memory, _ = pad_packed_sequence(packed, batch_first=True, total_length=source.shape[1])
        memory = F.dropout(memory, self.dropout)
        hidden, _ = self.decoder(F.dropout(self.embedding(target), self.dropout), state)
        hidden = F.dropout(hidden, self.dropout)
        logits = (hidden @ self.score(memory).mT).masked_fill(is_padding.unsqueeze(1), -torch.inf)
        context = logits.softmax(-1) @ memory
        combined = F.dropout(self.combine(torch.cat([context, hidden], dim=-1)).tanh(), self.dropout)
        return F.linear(self.narrow(combined), self.embedding.weight)
