"""Names by which PyTorch, Hugging Face, fairseq, OpenNMT-py, JoeyNMT, Sockeye, SentencePiece and subword-nmt call what
a key of a recipe says. Who writes one is told the key.

A key may differ in its unit: their batches may count sentences, their vocabularies merges.
"""

from collections.abc import Iterator, Mapping

OTHER_NAMES: Mapping[str, str] = {
    "seed": "random_seed manual_seed",
    "tokenizer.kind": "model_type tokenizer_type subword_type level",
    "tokenizer.vocab_size": "num_merges bpe_merges num_operations num_symbols bpe_operations src_vocab_size"
    " tgt_vocab_size voc_limit num_words",
    "tokenizer.min_frequency": "min_freq voc_min_freq src_words_min_frequency tgt_words_min_frequency",
    "tokenizer.lowercase": "do_lower_case do_lowercase",
    "tokenizer.normalization": "normalization_rule_name normalizer",
    "tokenizer.shared": "share_vocab shared_vocab joined_dictionary joint_vocab",
    "data.limits.max_length": "max_sent_length max_seq_len max_seq_length max_source_positions max_target_positions"
    " src_seq_length tgt_seq_length block_size max_source_length max_target_length",
    "data.source": "src src_lang source_lang",
    "data.target": "trg tgt tgt_lang trg_lang target_lang",
    "data.train": "train_src trainpref train_file",
    "data.valid": "dev val validation_file validpref eval_file",
    "data.tests": "testpref test_file",
    "model.architecture": "arch model_arch",
    "model.embedding_dim": "word_vec_size embed_dim embedding_size n_embd num_embed",
    "model.encoder.layers": "num_encoder_layers encoder_layers enc_layers num_layers num_hidden_layers n_layers"
    " n_layer",
    "model.decoder.layers": "num_decoder_layers decoder_layers dec_layers num_layers num_hidden_layers n_layers"
    " n_layer",
    "model.encoder.dim": "d_model hidden_size encoder_embed_dim transformer_model_size rnn_size enc_rnn_size hidden_dim"
    " enc_hid_size",
    "model.decoder.dim": "d_model hidden_size decoder_embed_dim transformer_model_size rnn_size dec_rnn_size hidden_dim"
    " dec_hid_size",
    "model.encoder.heads": "nhead num_heads encoder_attention_heads num_attention_heads transformer_attention_heads"
    " n_head n_heads attention_heads",
    "model.decoder.heads": "nhead num_heads decoder_attention_heads num_attention_heads transformer_attention_heads"
    " n_head n_heads attention_heads",
    "model.encoder.key_value_heads": "num_key_value_heads num_kv_heads n_kv_heads num_kv",
    "model.decoder.key_value_heads": "num_key_value_heads num_kv_heads n_kv_heads num_kv",
    "model.encoder.feed_forward_dim": "d_ff dim_feedforward ff_size intermediate_size encoder_ffn_dim transformer_ff"
    " encoder_ffn_embed_dim transformer_feed_forward_num_hidden ffn_dim ff_dim",
    "model.decoder.feed_forward_dim": "d_ff dim_feedforward ff_size intermediate_size decoder_ffn_dim transformer_ff"
    " decoder_ffn_embed_dim transformer_feed_forward_num_hidden ffn_dim ff_dim",
    "model.norm": "norm_first prenorm pre_norm encoder_normalize_before decoder_normalize_before layer_norm_position",
    "model.normalization": "norm_type layer_norm",
    "model.norm_eps": "layer_norm_eps layer_norm_epsilon rms_norm_eps",
    "model.activation": "activation_fn activation_function hidden_act pos_ffn_activation_fn"
    " transformer_activation_type",
    "model.positions": "position_encoding position_encodings position_encoding_type position_embedding_type"
    " positional_encoding",
    "model.rotary.base": "rope_theta rotary_base",
    "model.tie": "tie_weights tie_word_embeddings share_embeddings share_all_embeddings share_decoder_embeddings"
    " share_decoder_input_output_embed tied_embeddings tied_softmax weight_tying weight_tying_type",
    "model.max_length": "max_position_embeddings n_positions max_len context_length",
    "model.init_range": "param_init initializer_range init_std",
    "model.dropout.residual": "dropout_rate hidden_dropout_prob hidden_dropout resid_pdrop",
    "model.dropout.embedding": "embd_pdrop embedding_dropout emb_dropout embed_dropout",
    "model.dropout.attention": "attention_dropout attention_probs_dropout_prob attn_dropout attn_pdrop",
    "model.dropout.feed_forward": "activation_dropout relu_dropout ff_dropout",
    "model.dropout.depth": "layerdrop layer_drop encoder_layerdrop decoder_layerdrop drop_path_rate stochastic_depth",
    "model.recurrent.cell": "rnn_type cell_type",
    "model.recurrent.attention": "global_attention",
    "model.recurrent.bidirectional": "brnn",
    "training.max_steps": "max_update max_updates train_steps num_steps updates total_steps max_iters",
    "training.max_epochs": "num_train_epochs num_epochs max_epoch n_epochs max_num_epochs",
    "training.batch_tokens": "max_tokens batch_size per_device_train_batch_size train_batch_size max_tokens_per_batch",
    "training.accumulate": "gradient_accumulation_steps grad_accum_steps update_freq accum_count batch_multiplier"
    " update_interval gradient_accumulation accumulate_grad_batches",
    "training.label_smoothing": "label_smoothing_factor smoothing",
    "training.optimizer.name": "optim optimizer_type",
    "training.optimizer.betas": "adam_betas adam_beta1 adam_beta2 beta1 beta2",
    "training.optimizer.eps": "adam_eps adam_epsilon epsilon",
    "training.schedule.name": "lr_scheduler lr_scheduler_type scheduler scheduling decay_method"
    " learning_rate_scheduler_type",
    "training.schedule.peak": "lr learning_rate initial_learning_rate max_lr peak_lr base_lr",
    "training.schedule.warmup_steps": "warmup warmup_updates learning_rate_warmup num_warmup_steps warmup_iters",
    "training.schedule.final": "min_lr learning_rate_min end_learning_rate eta_min",
    "training.schedule.factor": "decrease_factor learning_rate_decay lr_shrink learning_rate_reduce_factor",
    "training.clip_norm": "max_grad_norm clip_grad_norm gradient_clip_val gradient_clipping_threshold grad_clip",
    "training.ema": "average_decay ema_decay",
    "training.precision": "fp16 bf16 amp mixed_precision use_amp",
    "training.recompute": "gradient_checkpointing activation_checkpointing checkpoint_activations",
    "training.init_from": "train_from load_model finetune_from_model pretrained_model restore_file",
    "training.log_every": "logging_steps log_interval report_every logging_freq log_steps logging_interval",
    "training.save_every": "save_steps save_interval_updates save_checkpoint_steps save_interval",
    "training.validation.every_steps": "eval_steps validation_freq valid_steps validate_interval_updates"
    " checkpoint_interval eval_interval validation_interval",
    "training.validation.every_epochs": "validate_interval",
    "training.early_stopping.patience": "max_num_checkpoint_not_improved early_stopping_patience",
    "training.early_stopping.metric": "metric_for_best_model best_checkpoint_metric early_stopping_metric"
    " optimized_metric",
    "training.keep.last": "keep_last_epochs keep_checkpoint save_total_limit keep_last_params keep_interval_updates",
    "training.keep.best": "keep_best_ckpts keep_best_checkpoints keep_best_params",
    "training.trackers": "report_to wandb_project",
    "training.threads": "num_threads n_threads",
    "decoding.beam": "beam_size num_beams beam_width n_beams",
    "decoding.strategy": "do_sample sampling sampling_method decoding_strategy",
    "decoding.alpha": "length_penalty lenpen beam_alpha length_penalty_alpha len_penalty",
    "decoding.top_k": "random_sampling_topk sampling_topk topk",
    "decoding.top_p": "random_sampling_topp sampling_topp topp",
    "decoding.temperature": "random_sampling_temp temp softmax_temperature",
    "decoding.n_best": "num_return_sequences nbest nbest_size num_best",
    "decoding.max_length": "max_new_tokens max_output_length max_len_b max_decode_length max_generate_length",
    "decoding.min_length": "min_new_tokens min_len min_output_length",
    "decoding.max_ratio": "max_len_a max_length_ratio",
    "decoding.no_repeat_ngram": "no_repeat_ngram_size block_ngram_repeat",
    "decoding.forbidden": "bad_words bad_words_ids avoid_list",
    "decoding.replace_unknown": "replace_unk replace_unks",
    "decoding.batch_sentences": "eval_batch_size per_device_eval_batch_size",
    "evaluation.bleu_tokenize": "sacrebleu_tokenizer tokenize bleu_tokenizer",
    "evaluation.metrics": "eval_metric eval_metrics",
}
"""By key of a recipe, the names of others, with blanks between them."""


def keys_of_other_name(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the keys that others call so."""
    return (tuple(key.split(".")) for key, names in OTHER_NAMES.items() if name in names.split())
