//! Stop flag, start gate, semaphores, the event pool.
