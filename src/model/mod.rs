//! AST to a checked model.
