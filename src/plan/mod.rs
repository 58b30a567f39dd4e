//! Model to plan: flowop programs as flat steps, with totals.
