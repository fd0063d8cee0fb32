"""The factory of the parts that read characters: CANINE (Clark et al. 2022), figure 1."""

from typing import Any

from tfm.model.characters.downsampling import Downsampling
from tfm.model.characters.embedding import CharacterEmbedding
from tfm.model.characters.hash_embedding import HashEmbedding
from tfm.model.characters.upsampling import Upsampling
from tfm.model.config import CanineConfig
from tfm.model.layers.adaptive_softmax import EmbeddingTable
from tfm.model.transformer.factory import ModuleFactory


class CharacterModuleFactory(ModuleFactory):
    """The parts of a network whose source is characters; its target has pieces, or names, as ever."""

    @property
    def canine(self) -> CanineConfig:
        assert self.config.canine is not None
        return self.config.canine

    def source_embedding_table(self, vocab: int) -> Any:
        """A few small tables, however many characters there are."""
        width = self.config.embedding_dim or self.config.encoder.dim
        return HashEmbedding(self.canine.hashes, self.canine.buckets, width)

    def source_embedding(self, table: EmbeddingTable) -> CharacterEmbedding:
        """The shorter sequence of the source's characters."""
        stack = self.config.encoder
        local_factory = ModuleFactory(
            self.config.model_copy(update={"window": self.canine.window}), self.compute_dtype, self.dropout_rng
        )
        return CharacterEmbedding(
            self.embedding(table, stack),
            local_factory.layer(stack),
            Downsampling(
                stack.dim,
                self.canine.rate,
                norm=self.normalization(stack.dim),
                compute_dtype=self.compute_dtype,
            ),
            self.canine.rate,
        )

    def upsampling(self) -> Upsampling:
        """Return the module that makes rows of characters from those of the shorter sequence."""
        stack = self.config.encoder
        return Upsampling(
            stack.dim,
            self.canine.upsampling,
            norm=self.normalization(stack.dim),
            layer=self.layer(stack),
            last_norm=self.final_norm(stack),
            compute_dtype=self.compute_dtype,
        )
