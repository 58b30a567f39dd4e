//! Ranks that an MPI launcher such as `mpirun` started: the transport over MPI.
//!
//! Only calls that return at once are used: the waiting ones of MPI keep a processor busy. All calls are made by one
//! thread.

use super::RankGroup;
use super::group::SILENCE;
use super::transport::Transport;
use ::mpi::Threading;
use ::mpi::datatype::Equivalence;
use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Destination, Source};
use ::mpi::request::{Request, StaticScope};
use ::mpi::topology::{Communicator, SimpleCommunicator};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Connects this process with the other ranks of its launcher. All of them call this, and it returns when all have. A
/// rank that loses rank 0 sets `interrupt` to the number of a signal.
pub fn connect(interrupt: Arc<AtomicUsize>) -> Result<RankGroup, String> {
    let [_, host, ..] = crate::os::proc::uname();
    RankGroup::start(MpiTransport::new, &host, SILENCE, interrupt)
}

/// The name and version of the MPI library.
pub fn mpi_version() -> String {
    let all = ::mpi::environment::library_version().unwrap_or_default();
    all.split(',').next().unwrap_or_default().trim().to_owned()
}

/// A message on its way, to or from another rank.
struct MessageTransfer {
    request: Request<'static, [u8], StaticScope>,
    /// The bytes, which MPI reads or writes until the request is complete. That may be never if the other rank is lost:
    /// they are then never freed.
    buffer: *mut [u8],
}

impl MessageTransfer {
    /// Begins a transfer of these bytes.
    fn begin(bytes: Vec<u8>, request: impl FnOnce(&'static mut [u8]) -> Request<'static, [u8], StaticScope>) -> Self {
        let buffer = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: the pointer is that of a box which is not freed before the request, the only user of the reference, is
        // complete.
        let request = request(unsafe { &mut *buffer });
        Self { request, buffer }
    }

    /// Returns the bytes if the transfer is complete.
    fn end(self) -> Result<Vec<u8>, Self> {
        let Self { request, buffer } = self;
        match request.test() {
            // SAFETY: `begin` made the pointer from a box, and the request, which had the only reference, is complete.
            Ok(_) => Ok(unsafe { Box::from_raw(buffer) }.into_vec()),
            Err(request) => Err(Self { request, buffer }),
        }
    }
}

struct MpiTransport {
    universe: Universe,
    world: SimpleCommunicator,
    sending: Vec<MessageTransfer>,
    /// Messages in the order of their arrival, each with its sender. A long one arrives over several calls.
    receiving: VecDeque<(usize, MessageTransfer)>,
}

impl MpiTransport {
    fn new() -> Result<Self, String> {
        let (universe, _) =
            ::mpi::initialize_with_threading(Threading::Funneled).ok_or("MPI is initialized already")?;
        let world = universe.world();
        Ok(Self { universe, world, sending: Vec::new(), receiving: VecDeque::new() })
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
        let receiver = self.world.process_at_rank(to as i32);
        let send = |bytes: &'static mut [u8]| receiver.immediate_send(StaticScope, &*bytes);
        self.sending.push(MessageTransfer::begin(message.to_vec(), send));
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        while let Some((message, status)) = self.world.any_process().immediate_matched_probe() {
            let len = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(0);
            let receive = |bytes: &'static mut [u8]| message.immediate_matched_receive_into(StaticScope, bytes);
            self.receiving.push_back((status.source_rank() as usize, MessageTransfer::begin(vec![0; len], receive)));
        }
        // The messages of a rank stay in their order: a short one may be complete before the long one before it.
        let mut incomplete = Vec::new();
        let mut at = 0;
        while let Some((from, _)) = self.receiving.get(at) {
            let from = *from;
            if !incomplete.contains(&from) {
                let (_, transfer) = self.receiving.remove(at)?;
                match transfer.end() {
                    Ok(bytes) => return Some((from, bytes)),
                    Err(transfer) => self.receiving.insert(at, (from, transfer)),
                }
                incomplete.push(from);
            }
            at += 1;
        }
        None
    }

    fn has_sent_all(&mut self) -> bool {
        self.sending =
            std::mem::take(&mut self.sending).into_iter().filter_map(|sending| sending.end().err()).collect();
        self.sending.is_empty()
    }

    fn end(mut self: Box<Self>, all_end: bool) {
        if all_end && self.has_sent_all() && self.receiving.is_empty() {
            // Ends MPI, which waits for all ranks.
            drop(self.universe);
        } else {
            // A request that is dropped must be complete, and MPI can't end without the lost ranks.
            std::mem::forget(self);
        }
    }
}
