"""GINC (Xie et al. 2022): texts of hidden Markov models, whose likelihoods are exact; see research/docs/ginc.md."""
