// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What the recorder sees of a program: its calls on files, its time between them, its mapped files, its io_uring
// requests. Each program is optional; the recorder says what a kernel refused.
//
// The structures have only the members that are read. Their offsets come from the kernel's BTF when the object is
// loaded (`preserve_access_index`), so no header of a kernel is needed.
//
// The object in this folder is made by `build` there. What a record holds is `struct call`; `record.rs` reads it.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
typedef int s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define FUNCTION static __attribute__((noinline))
#define KERNEL __attribute__((preserve_access_index))

// ---- the kernel's structures

struct ns_common { u32 inum; } KERNEL;
struct pid_namespace { struct ns_common ns; } KERNEL;
struct upid { int nr; struct pid_namespace *ns; } KERNEL;
struct pid { u32 level; struct upid numbers[1]; } KERNEL;
struct super_block { u32 s_dev; } KERNEL;
struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	s64 i_size;
	u32 i_generation;
} KERNEL;
struct file {
	struct inode *f_inode;
	u32 f_flags;
	s64 f_pos;
} KERNEL;
struct fdtable { u32 max_fds; struct file **fd; } KERNEL;
struct files_struct { struct fdtable *fdt; } KERNEL;
struct thread_info { u32 status; u64 flags; } KERNEL;
struct task_struct {
	struct thread_info thread_info;
	u32 __state;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	void *fs;
	struct files_struct *files;
} KERNEL;
struct address_space { struct inode *host; } KERNEL;
struct vm_area_struct { unsigned long vm_start; unsigned long vm_pgoff; struct file *vm_file; } KERNEL;
struct linux_binprm { struct file *file; const char *interp; } KERNEL;
struct filename { const char *name; } KERNEL;
struct kiocb { s64 ki_pos; } KERNEL;
struct io_cqe { s32 fd; } KERNEL;
struct io_kiocb { struct file *file; u8 opcode; u64 flags; struct io_cqe cqe; } KERNEL;
struct io_rw { struct kiocb kiocb; u32 len; } KERNEL;
struct io_sync { s64 len; s64 off; s32 flags; } KERNEL;
struct open_how { u64 flags; } KERNEL;
struct io_open { int dfd; struct filename *filename; struct open_how how; } KERNEL;
struct io_statx { int dfd; struct filename *filename; } KERNEL;
struct io_rename { int old_dfd; int new_dfd; struct filename *oldpath; struct filename *newpath; } KERNEL;
struct io_unlink { int dfd; int flags; struct filename *filename; } KERNEL;
struct io_mkdir { int dfd; struct filename *filename; } KERNEL;
struct io_close { int fd; } KERNEL;
struct io_ftrunc { s64 len; } KERNEL;
struct io_uring_cqe { s32 res; } KERNEL;
struct bpf_iter__task { u64 meta; struct task_struct *task; };

#ifdef ARCH_X86_64
struct pt_regs { unsigned long di, si, dx, r10, r8, r9; } KERNEL;
#define ARGS(r) { 0, r->di, r->si, r->dx, r->r10, r->r8, r->r9, 0 }
// Another call table: 32-bit calls of a 64-bit kernel.
#define FOREIGN(task) ((task)->thread_info.status & 2)
#define STAT_MODE 24
#else
struct pt_regs { u64 regs[31]; u64 orig_x0; } KERNEL;
#define ARGS(r) { 0, r->orig_x0, r->regs[1], r->regs[2], r->regs[3], r->regs[4], r->regs[5], 0 }
#define FOREIGN(task) ((task)->thread_info.flags & (1 << 22))
#define STAT_MODE 16
#endif

// ---- helpers of the kernel

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*ktime)(void) = (void *)5;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ring_submit)(void *data, u64 flags) = (void *)132;
static void *(*storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*current)(void) = (void *)158;
static long (*find_vma)(struct task_struct *task, u64 address, void *callback, void *data, u64 flags) = (void *)180;

#define READ(to, from) read_kernel(&(to), sizeof(to), &(from))
// The reader looks by itself: a wake-up costs more than a record.
#define NO_WAKEUP 1

// ---- what a record holds

struct file_info {
	u64 ino, size, pos;
	u32 generation, device, flags, mode;
};

enum { CALL = 1, WAIT, FORK, EXEC, EXIT, FAULT, REQUEST, COMPLETION };

struct call {
	u8 kind, files;
	u16 nr;
	u32 tid, tgid;
	u16 name0, name1; // with their zero byte; 0: none
	u64 start, end;
	s64 result;
	u64 args[6];
	u64 gap_run, gap_ready, gap_blocked; // since the last record of the thread
	u64 run, ready;                      // in the call
};

// Most calls.
struct short_call {
	struct call call;
	struct file_info file;
};

#define NAME 4096
struct long_call {
	struct call call;
	struct file_info file[2];
	u64 pointed[2]; // what the call read through its pointer; offsets as they are after it
	char names[2 * NAME];
};

#define HEAD (__builtin_offsetof(struct long_call, names))

// ---- state

enum { RUNNING = 1, READY, BLOCKED };

struct state {
	u32 tid, tgid;
	u64 start; // of the call that is being recorded, or 0
	u32 nr;
	u32 sched; // since `since`
	u64 since;
	u64 run, ready, blocked;
	u64 gap_run, gap_ready, gap_blocked;
	u64 slept, woken; // the wait that is going on
	u32 waker;
	u32 idle; // nothing is recorded before the program starts
	u32 in_call;
	struct file_info file[2];
};

struct {
	int (*type)[29]; // BPF_MAP_TYPE_TASK_STORAGE
	int (*map_flags)[1];
	int *key;
	struct state *value;
} tasks SEC(".maps");

struct {
	int (*type)[27]; // BPF_MAP_TYPE_RINGBUF
	int (*max_entries)[1 << 27];
} ring SEC(".maps");

struct {
	int (*type)[6]; // BPF_MAP_TYPE_PERCPU_ARRAY
	int (*max_entries)[2];
	u32 *key;
	struct long_call *value;
} scratch SEC(".maps");

// The request of io_uring at this address.
struct {
	int (*type)[1]; // BPF_MAP_TYPE_HASH
	int (*max_entries)[1 << 16];
	u64 *key;
	struct short_call *value;
} requests SEC(".maps");

enum { DROPPED, UNTRACKED, FOREIGN_CALLS, LEFT_OUT, COUNTERS };

struct {
	int (*type)[6];
	int (*max_entries)[COUNTERS];
	u32 *key;
	u64 *value;
} counters SEC(".maps");

// What to do with each system call, see `plan.rs`: the numbers of its arguments, from 1, and flags.
#define FD0(d) ((d) & 7)
#define FD1(d) ((d) >> 3 & 7)
#define PATH0(d) ((d) >> 6 & 7)
#define PATH1(d) ((d) >> 9 & 7)
#define STAT(d) ((d) >> 12 & 7)
#define POINTER(d) ((d) >> 15 & 7) // to what the call reads: an offset, open_how, iovec
enum {
	STATX = 1 << 18,
	NEW_FD = 1 << 19,  // the result is a descriptor
	IOVEC = 1 << 20,   // the pointer is to vectors, their number follows
	ADDRESS = 1 << 21, // the first argument is an address in a mapping
	ANY = 1 << 22,     // recorded without a file
	LONG = 1 << 23,    // a `struct long_call`
};
#define CALLS 512
const volatile u32 calls[CALLS] = {};
// Recorded: what this thread starts, or this process and what it starts; as seen in the recorder's namespace.
const volatile u32 starter = 0;
const volatile u32 root = 0;
const volatile u32 namespace = 0;
// A wait shorter than this is no record.
const volatile u64 least_wait = 20000;

INLINE void count(u32 what)
{
	u64 *n = map_lookup(&counters, &what);
	if (n)
		*n += 1;
}

INLINE int is_file(u32 mode)
{
	mode &= 0170000;
	return mode == 0100000 || mode == 0040000;
}

FUNCTION void inode_info(struct inode *inode, struct file_info *to)
{
	u16 mode = 0;
	struct super_block *sb = 0;
	READ(mode, inode->i_mode);
	to->mode = mode;
	if (!is_file(mode))
		return;
	READ(to->ino, inode->i_ino);
	READ(to->size, inode->i_size);
	READ(to->generation, inode->i_generation);
	READ(sb, inode->i_sb);
	READ(to->device, sb->s_dev);
}

// The mode is 0 where there is no file.
FUNCTION void file_info(struct file *file, struct file_info *to)
{
	struct inode *inode = 0;
	to->mode = 0;
	READ(inode, file->f_inode);
	if (!inode)
		return;
	inode_info(inode, to);
	if (!is_file(to->mode))
		return;
	READ(to->pos, file->f_pos);
	READ(to->flags, file->f_flags);
}

FUNCTION void fd_info(struct task_struct *task, s32 fd, struct file_info *to)
{
	struct fdtable *table = task->files->fdt;
	struct file *file = 0;
	to->mode = 0;
	if (fd < 0 || (u32)fd >= table->max_fds)
		return;
	u64 fds = (u64)table->fd;
	read_kernel(&file, sizeof(file), (void *)(fds + (u64)(u32)fd * 8));
	if (file)
		file_info(file, to);
}

// The number of a thread as the recorder sees it.
FUNCTION u32 number(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	u32 level = pid->level;
	for (u32 i = 0; i < 4; i++) {
		struct upid *at = (void *)((u64)&pid->numbers + i * sizeof(struct upid));
		struct pid_namespace *ns = 0;
		u32 inum = 0;
		int nr = 0;
		if (i > level)
			break;
		READ(ns, at->ns);
		READ(inum, ns->ns.inum);
		READ(nr, at->nr);
		if (inum == namespace)
			return nr;
	}
	return 0;
}

INLINE void account(struct state *st, u64 now)
{
	u64 gone = now - st->since;
	if (st->sched == RUNNING)
		st->run += gone;
	else if (st->sched == READY)
		st->ready += gone;
	else
		st->blocked += gone;
	st->since = now;
}

INLINE void begin(struct state *st)
{
	u64 now = ktime();
	account(st, now);
	st->gap_run = st->run;
	st->gap_ready = st->ready;
	st->gap_blocked = st->blocked;
	st->run = st->ready = st->blocked = 0;
	st->start = now;
}

INLINE void fill(struct call *call, struct state *st, u64 now)
{
	call->kind = CALL;
	call->nr = st->nr;
	call->tid = st->tid;
	call->tgid = st->tgid;
	call->name0 = 0;
	call->name1 = 0;
	call->start = st->start;
	call->end = now;
	call->gap_run = st->gap_run;
	call->gap_ready = st->gap_ready;
	call->gap_blocked = st->gap_blocked;
	call->run = st->run;
	call->ready = st->ready;
	st->run = st->ready = st->blocked = 0;
	st->start = 0;
}

FUNCTION struct state *track(struct task_struct *task, u32 sched)
{
	struct state *st = storage_get(&tasks, task, 0, 1);
	if (!st) {
		count(UNTRACKED);
		return 0;
	}
	if (!st->since) {
		st->tid = number(task);
		st->tgid = number(task->group_leader);
		st->since = ktime();
		st->sched = sched;
	}
	return st;
}

// ---- which tasks are recorded

// For a program that runs already: its threads, and what it has started.
SEC("iter/task")
int running(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	struct task_struct *at = task->group_leader;
	for (int i = 0; i < 32; i++) {
		if (number(at) == root) {
			track(task, task->__state ? BLOCKED : RUNNING);
			return 0;
		}
		if (at->pid <= 1)
			return 0;
		at = at->real_parent->group_leader;
	}
	return 0;
}

INLINE struct call *reserve(struct state *st, u32 kind)
{
	struct call *to = ring_reserve(&ring, sizeof(*to), 0);
	if (!to) {
		count(DROPPED);
		return 0;
	}
	__builtin_memset(to, 0, sizeof(*to));
	to->kind = kind;
	to->nr = st->nr;
	to->tid = st->tid;
	to->tgid = st->tgid;
	to->start = to->end = ktime();
	return to;
}

SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct state *of = storage_get(&tasks, parent, 0, 0);
	if (!of && (!starter || number(parent) != starter))
		return 0;
	struct state *st = track(child, READY);
	if (!st)
		return 0;
	// A thread of the recorder measures what a call costs.
	if (!of)
		st->idle = child->pid == child->tgid;
	struct call *to = reserve(st, FORK);
	if (!to)
		return 0;
	to->result = of ? of->tid : starter;
	to->args[0] = parent->files == child->files;
	to->args[1] = parent->fs == child->fs;
	ring_submit(to, NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int exited(u64 *ctx)
{
	struct state *st = storage_get(&tasks, current(), 0, 0);
	struct call *to = st ? reserve(st, EXIT) : 0;
	if (to)
		ring_submit(to, NO_WAKEUP);
	return 0;
}

// A program that starts: the memory with its name is gone when the call ends. Of a script this is its interpreter.
SEC("tp_btf/sched_process_exec")
int executed(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct state *st = storage_get(&tasks, task, 0, 0);
	if (!st)
		return 0;
	u32 was = st->tid;
	st->tid = number(task);
	st->tgid = number(task->group_leader);
	if (st->idle) {
		st->idle = 0;
		st->run = st->ready = st->blocked = 0;
		st->since = ktime();
	}
	u32 zero = 0;
	struct long_call *to = map_lookup(&scratch, &zero);
	if (!to)
		return 0;
	struct call *call = &to->call;
	__builtin_memset(call, 0, sizeof(*call));
	call->kind = EXEC;
	call->files = 2;
	call->tid = st->tid;
	call->tgid = st->tgid;
	call->start = call->end = ktime();
	call->result = was;
	to->file[1].mode = 0;
	file_info(bprm->file, &to->file[0]);
	u64 length = 0;
	long n = read_kernel_str(to->names, NAME, bprm->interp);
	if (n > 0 && n <= NAME)
		length = call->name0 = n;
	if (ring_output(&ring, to, HEAD + length, NO_WAKEUP))
		count(DROPPED);
	return 0;
}

// ---- system calls

struct found {
	u64 address;
	struct file_info info;
};

static long found_vma(struct task_struct *task, struct vm_area_struct *vma, struct found *found)
{
	struct file *file = vma->vm_file;
	if (file) {
		file_info(file, &found->info);
		found->info.pos = (vma->vm_pgoff << 12) + (found->address - vma->vm_start);
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int entered(u64 *ctx)
{
	struct task_struct *task = current();
	struct state *st = storage_get(&tasks, task, 0, 0);
	if (!st || st->idle)
		return 0;
	struct pt_regs *regs = (void *)ctx[0];
	u64 nr = ctx[1];
	st->nr = nr;
	st->start = 0;
	st->in_call = 1;
	if (nr >= CALLS)
		return 0;
	u32 d = calls[nr];
	if (!d)
		return 0;
	if (FOREIGN(task)) {
		count(FOREIGN_CALLS);
		return 0;
	}
	u64 args[8] = ARGS(regs);
	st->file[0].mode = 0;
	if (FD0(d))
		fd_info(task, args[FD0(d)], &st->file[0]);
	if (d & LONG) {
		st->file[1].mode = 0;
		if (FD1(d))
			fd_info(task, args[FD1(d)], &st->file[1]);
		if (d & ADDRESS) {
			struct found found = { args[1] };
			find_vma(task, args[1], found_vma, &found, 0);
			st->file[0] = found.info;
		}
	}
	if (!(d & ANY) && !is_file(st->file[0].mode) && !(d & LONG && is_file(st->file[1].mode))) {
		if (st->file[0].mode)
			count(LEFT_OUT);
		return 0;
	}
	begin(st);
	return 0;
}

// What stat(2) found.
FUNCTION void stat_info(u64 from, u32 statx, struct file_info *to)
{
	u64 dev = 0;
	u32 major = 0, minor = 0;
	u16 mode = 0;
	to->pos = to->flags = to->generation = 0;
	if (statx) {
		read_user(&mode, 2, (void *)(from + 28));
		to->mode = mode;
		read_user(&to->ino, 8, (void *)(from + 32));
		read_user(&to->size, 8, (void *)(from + 40));
		read_user(&major, 4, (void *)(from + 136));
		read_user(&minor, 4, (void *)(from + 140));
		to->device = major << 20 | minor;
	} else {
		read_user(&dev, 8, (void *)from);
		read_user(&to->ino, 8, (void *)(from + 8));
		read_user(&to->mode, 4, (void *)(from + STAT_MODE));
		read_user(&to->size, 8, (void *)(from + 48));
		to->device = (dev >> 8 & 0xfff) << 20 | (dev & 0xff) | (dev >> 12 & 0xfff00);
	}
}

// The bytes that these vectors ask for; -1 if there are more than 16.
INLINE u64 vectors(u64 at, u64 n)
{
	u64 sum = 0, length = 0;
	if (n > 16)
		return -1;
	for (int i = 0; i < 16 && i < n; i++) {
		if (read_user(&length, 8, (void *)(at + 16 * i + 8)))
			return -1;
		sum += length;
	}
	return sum;
}

// The names of a call: their lengths in `call`, their texts one after the other.
INLINE u32 names(struct long_call *to, u64 path0, u64 path1)
{
	u32 length = 0;
	if (path0) {
		long n = read_user_str(to->names, NAME, (void *)path0);
		if (n > 0 && n <= NAME)
			length = to->call.name0 = n;
	}
	if (path1 && length <= NAME) {
		long n = read_user_str(to->names + length, NAME, (void *)path1);
		if (n > 0 && n <= NAME)
			length += to->call.name1 = n;
	}
	return length;
}

SEC("tp_btf/sys_exit")
int left(u64 *ctx)
{
	struct task_struct *task = current();
	struct state *st = storage_get(&tasks, task, 0, 0);
	if (!st)
		return 0;
	st->in_call = 0;
	if (!st->start)
		return 0;
	u64 now = ktime();
	struct pt_regs *regs = (void *)ctx[0];
	s64 result = ctx[1];
	u64 args[8] = ARGS(regs);
	u32 d = calls[st->nr & (CALLS - 1)];
	account(st, now);
	if (!(d & LONG)) {
		struct short_call *to = ring_reserve(&ring, sizeof(*to), 0);
		if (!to) {
			count(DROPPED);
			st->start = 0;
			return 0;
		}
		fill(&to->call, st, now);
		to->call.files = 1;
		to->call.result = result;
		__builtin_memcpy(to->call.args, args + 1, sizeof(to->call.args));
		to->file = st->file[0];
		ring_submit(to, NO_WAKEUP);
		return 0;
	}
	u32 zero = 0;
	struct long_call *to = map_lookup(&scratch, &zero);
	if (!to)
		return 0;
	fill(&to->call, st, now);
	to->call.files = 2;
	to->call.result = result;
	to->file[0] = st->file[0];
	to->file[1] = st->file[1];
	if (d & NEW_FD && result >= 0)
		fd_info(task, result, &to->file[0]);
	else if (STAT(d) && result == 0)
		stat_info(args[STAT(d)], d & STATX, &to->file[1]);
	u64 length = names(to, args[PATH0(d)], args[PATH1(d)]);
	u64 pointer = args[POINTER(d)];
	to->pointed[0] = to->pointed[1] = -1;
	if (d & IOVEC)
		to->pointed[0] = vectors(pointer, args[3]);
	else if (pointer)
		read_user(to->pointed, 8, (void *)pointer);
	__builtin_memcpy(to->call.args, args + 1, sizeof(to->call.args));
	if (length > 2 * NAME)
		return 0;
	if (ring_output(&ring, to, HEAD + length, NO_WAKEUP))
		count(DROPPED);
	return 0;
}

// ---- time between calls

SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct state *st = storage_get(&tasks, prev, 0, 0);
	if (st) {
		u64 now = ktime();
		account(st, now);
		// Preempted, or about to sleep but not yet asleep: it wants to run.
		st->sched = ctx[0] || !ctx[3] ? READY : BLOCKED;
		st->slept = now;
		st->woken = 0;
	}
	st = storage_get(&tasks, next, 0, 0);
	if (!st)
		return 0;
	u64 now = ktime();
	account(st, now);
	st->sched = RUNNING;
	if (st->start || st->idle || !st->woken || st->woken - st->slept < least_wait)
		return 0;
	struct call *to = reserve(st, WAIT);
	if (!to)
		return 0;
	to->start = st->slept;
	to->end = st->woken;
	to->result = st->waker;
	st->woken = 0;
	ring_submit(to, NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_waking")
int waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct state *st = storage_get(&tasks, task, 0, 0);
	if (!st || st->sched != BLOCKED)
		return 0;
	u64 now = ktime();
	account(st, now);
	st->sched = READY;
	st->woken = now;
	struct state *by = storage_get(&tasks, current(), 0, 0);
	// What computes was interrupted, by a timer or a device.
	st->waker = by && by->in_call ? by->tid : 0;
	return 0;
}

// ---- mapped files

INLINE int mapped(struct address_space *mapping, u64 first, u64 last)
{
	struct state *st = storage_get(&tasks, current(), 0, 0);
	if (!st)
		return 0;
	struct file_info info = {};
	inode_info(mapping->host, &info);
	if (!is_file(info.mode))
		return 0;
	struct short_call *to = ring_reserve(&ring, sizeof(*to), 0);
	if (!to) {
		count(DROPPED);
		return 0;
	}
	__builtin_memset(&to->call, 0, sizeof(to->call));
	to->call.kind = FAULT;
	to->call.files = 1;
	to->call.tid = st->tid;
	to->call.tgid = st->tgid;
	to->call.start = to->call.end = ktime();
	to->call.args[0] = first;
	to->call.args[1] = last;
	to->file = info;
	ring_submit(to, NO_WAKEUP);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int faulted(u64 *ctx)
{
	return mapped((void *)ctx[0], ctx[1], ctx[1]);
}

SEC("tp_btf/mm_filemap_map_pages")
int mapped_pages(u64 *ctx)
{
	return mapped((void *)ctx[0], ctx[1], ctx[2]);
}

// ---- io_uring

enum {
	READV = 1, WRITEV, FSYNC, READ_FIXED, WRITE_FIXED, SYNC_FILE_RANGE = 8, FALLOCATE = 17, OPENAT, CLOSE, URING_STATX = 21,
	URING_READ, URING_WRITE, FADVISE, OPENAT2 = 28, URING_SPLICE = 30, RENAMEAT = 35, UNLINKAT, MKDIRAT, SYMLINKAT, LINKAT,
	FSETXATTR = 41, SETXATTR, FGETXATTR, GETXATTR, FTRUNCATE = 55, READV_FIXED = 60, WRITEV_FIXED,
};

// The kernel keeps the number of a file only in requests that are on an open one.
#define HAS_FD (~(1ull << OPENAT | 1ull << CLOSE | 1ull << URING_STATX | 1ull << OPENAT2 | 1ull << RENAMEAT | 1ull << UNLINKAT | \
	1ull << MKDIRAT | 1ull << SYMLINKAT | 1ull << LINKAT | 1ull << SETXATTR | 1ull << GETXATTR))

FUNCTION u64 kernel_name(struct long_call *to, struct filename *name, u64 at)
{
	const char *text = 0;
	READ(text, name->name);
	long n = read_kernel_str(to->names + (at & (NAME - 1)), NAME, text);
	if (n > 0 && n <= NAME)
		return n;
	return 0;
}

// REQ_F_FIXED_FILE: the number is that of the ring's own table.
#define FIXED 1

SEC("tp_btf/io_uring_submit_req")
int submitted(u64 *ctx)
{
	struct io_kiocb *req = (void *)ctx[0];
	struct task_struct *task = current();
	struct state *st = storage_get(&tasks, task, 0, 0);
	// The kernel's own thread of a ring.
	if (!st)
		st = storage_get(&tasks, task->group_leader, 0, 0);
	if (!st)
		return 0;
	u32 one = 1;
	struct long_call *to = map_lookup(&scratch, &one);
	if (!to)
		return 0;
	struct call *call = &to->call;
	__builtin_memset(call, 0, sizeof(*call));
	u8 op = req->opcode;
	call->kind = REQUEST;
	call->nr = op;
	call->files = 1;
	call->tid = st->tid;
	call->tgid = st->tgid;
	call->start = ktime();
	call->args[0] = -1;
	// By this the reader finds the names again.
	call->args[5] = (u64)req;
	to->file[0].mode = to->file[1].mode = 0;
	u64 length = 0;
	struct filename *name0 = 0, *name1 = 0;
	if (HAS_FD >> (op & 63) & 1 && !(req->flags & FIXED)) {
		call->args[0] = req->cqe.fd;
		fd_info(task, req->cqe.fd, &to->file[0]);
	}
	switch (op) {
	case READV: case WRITEV: case READ_FIXED: case WRITE_FIXED: case URING_READ: case URING_WRITE:
		read_kernel(&call->args[2], 4, &((struct io_rw *)req)->len);
		READ(call->args[3], ((struct io_rw *)req)->kiocb.ki_pos);
		break;
	case FSYNC: case SYNC_FILE_RANGE: case FALLOCATE:
		READ(call->args[2], ((struct io_sync *)req)->len);
		READ(call->args[3], ((struct io_sync *)req)->off);
		read_kernel(&call->args[4], 4, &((struct io_sync *)req)->flags);
		break;
	case FTRUNCATE:
		READ(call->args[2], ((struct io_ftrunc *)req)->len);
		break;
	case CLOSE:
		read_kernel(&call->args[0], 4, &((struct io_close *)req)->fd);
		fd_info(task, call->args[0], &to->file[0]);
		break;
	case OPENAT: case OPENAT2:
		read_kernel(&call->args[0], 4, &((struct io_open *)req)->dfd);
		READ(call->args[2], ((struct io_open *)req)->how.flags);
		READ(name0, ((struct io_open *)req)->filename);
		break;
	case URING_STATX:
		read_kernel(&call->args[0], 4, &((struct io_statx *)req)->dfd);
		READ(name0, ((struct io_statx *)req)->filename);
		break;
	case MKDIRAT:
		read_kernel(&call->args[0], 4, &((struct io_mkdir *)req)->dfd);
		READ(name0, ((struct io_mkdir *)req)->filename);
		break;
	case UNLINKAT:
		read_kernel(&call->args[0], 4, &((struct io_unlink *)req)->dfd);
		read_kernel(&call->args[2], 4, &((struct io_unlink *)req)->flags);
		READ(name0, ((struct io_unlink *)req)->filename);
		break;
	case RENAMEAT:
		read_kernel(&call->args[0], 4, &((struct io_rename *)req)->old_dfd);
		read_kernel(&call->args[2], 4, &((struct io_rename *)req)->new_dfd);
		READ(name0, ((struct io_rename *)req)->oldpath);
		READ(name1, ((struct io_rename *)req)->newpath);
		break;
	// Of these no more is known.
	case FADVISE: case URING_SPLICE: case FSETXATTR: case FGETXATTR: case READV_FIXED: case WRITEV_FIXED:
	case SYMLINKAT: case LINKAT: case SETXATTR: case GETXATTR:
		break;
	default:
		return 0;
	}
	if (name0) {
		call->files = 2;
		to->pointed[0] = to->pointed[1] = -1;
		length = call->name0 = kernel_name(to, name0, 0);
		if (name1)
			length += call->name1 = kernel_name(to, name1, length);
		if (length > 2 * NAME)
			return 0;
		if (ring_output(&ring, to, HEAD + length, NO_WAKEUP))
			count(DROPPED);
	} else if (!is_file(to->file[0].mode) && to->file[0].mode) {
		count(LEFT_OUT);
		return 0;
	}
	u64 key = (u64)req;
	if (map_update(&requests, &key, to, 0))
		count(UNTRACKED);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int completed(u64 *ctx)
{
	u64 key = ctx[1];
	struct io_uring_cqe *cqe = (void *)ctx[2];
	struct short_call *was = map_lookup(&requests, &key);
	if (!was)
		return 0;
	struct short_call *to = ring_reserve(&ring, sizeof(*to), 0);
	if (!to) {
		count(DROPPED);
		map_delete(&requests, &key);
		return 0;
	}
	*to = *was;
	map_delete(&requests, &key);
	to->call.kind = COMPLETION;
	to->call.files = 1;
	to->call.name0 = to->call.name1 = 0;
	to->call.end = ktime();
	to->call.result = cqe->res;
	u8 op = to->call.nr;
	// A fixed file is known only now, and an opened one.
	if ((op == OPENAT || op == OPENAT2) && cqe->res >= 0) {
		fd_info(current(), cqe->res, &to->file);
	} else if (!to->file.mode) {
		struct file *file = 0;
		READ(file, ((struct io_kiocb *)key)->file);
		if (file)
			file_info(file, &to->file);
	}
	ring_submit(to, NO_WAKEUP);
	return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
