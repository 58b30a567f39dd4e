//! Ranks that an MPI launcher such as `mpirun` started: the transport over MPI.
//!
//! Only calls that return at once are used: the waiting ones of MPI keep a processor busy. All calls are made by one
//! thread.

use super::RankGroup;
use super::group::SILENCE;
use super::transport::Transport;
use ::mpi::Threading;
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination, MatchedReceiveVec, Source};
use ::mpi::request::{Request, StaticScope};
use ::mpi::topology::{Communicator, SimpleCommunicator};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Connects this process with the other ranks of its launcher. All of them call this, and it returns when all have. A
/// rank that loses rank 0 sets `interrupt` to the number of a signal.
pub fn connect(interrupt: Arc<AtomicUsize>) -> Result<RankGroup, String> {
    let [_, host, ..] = crate::os::proc::uname();
    RankGroup::start(MpiTransport::new, &host, SILENCE, interrupt)
}

/// A message on its way.
type Sending = Request<'static, [u8], StaticScope>;

struct MpiTransport {
    universe: Universe,
    world: SimpleCommunicator,
    sending: Vec<Sending>,
}

impl MpiTransport {
    fn new() -> Result<Self, String> {
        let (universe, _) =
            ::mpi::initialize_with_threading(Threading::Funneled).ok_or("MPI is initialized already")?;
        let world = universe.world();
        Ok(Self { universe, world, sending: Vec::new() })
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn send(&mut self, to: usize, message: &[u8]) {
        // MPI reads the bytes until the message is sent, which may be never if the receiver is lost. So they are never
        // freed: about 100 kB for the result of a run, and for each rank 50 bytes a second, 4 MB a day.
        let message: &'static [u8] = Box::leak(message.to_vec().into_boxed_slice());
        self.sending.push(self.world.process_at_rank(to as i32).immediate_send(StaticScope, message));
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let (content, status) = self.world.any_process().immediate_matched_probe()?.matched_receive_vec::<u8>();
        Some((status.source_rank() as usize, content))
    }

    fn has_sent_all(&mut self) -> bool {
        self.sending =
            std::mem::take(&mut self.sending).into_iter().filter_map(|sending| sending.test().err()).collect();
        self.sending.is_empty()
    }

    fn end(mut self: Box<Self>, all_end: bool) {
        if all_end && self.has_sent_all() {
            // Ends MPI, which waits for all ranks.
            drop(self.universe);
        } else {
            // A request that is dropped must be complete, and MPI can't end without the lost ranks.
            std::mem::forget(self);
        }
    }
}
