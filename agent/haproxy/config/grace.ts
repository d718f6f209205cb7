// For how long the worker that was replaced goes on taking connections beside the new one, in milliseconds.
//
// HAProxy before 3.1 tells the old worker to stop before it forks the new one, and without it nobody takes connections
// until that one does: 18 to 40 ms with 1,000 listeners on two processors. From 3.1 on the new one is waited for.
// More than what a worker takes to come up would let more clients with session affinity come to a worker that has not
// been taught their members yet (docs/design/haproxy-versions.md).

export const GRACE_MS = 50;
