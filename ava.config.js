// The longest test files begin first, so that short ones fill the gaps at the end of a run.
const FIRST = [
  '/test/deploy/alerts',
  '/test/walks/sre-faults',
  '/test/real/verdicts',
  '/test/real/kubernetes-dead-haproxy',
  '/test/real/kernel-path-source',
  '/test/real/metrics',
  '/test/real/connection-sync',
  '/test/real/pair-soak',
  '/test/real/vrrp',
  '/test/real/handover',
  '/test/real/pair',
  '/test/real/process-faults',
  '/test/real/landing',
  '/test/demo',
  '/test/real/',
  '/test/scripts/',
];

/** Clients of the soak wait ten seconds for an answer, which hosts that share two processors with other tests may not give. */
const LAST = '/test/real/soak-all';

export default {
  // The tests in test/image boot a machine for minutes: `make image` and `make test-image` run them.
  // `make alerts` sets ALERT_MINUTES: its outages last for a quarter of an hour.
  files: process.env.IMAGE_TESTS
    ? ['test/image/*.test.ts']
    : [
        'test/**/*.test.ts',
        '!test/image/**',
        ...(process.env.ALERT_MINUTES ? [] : ['!test/real/alert-durations.test.ts']),
      ],
  extensions: ['ts'],
  timeout: '5m',
  // More files than the two processors of the smallest test machine: tests with real programs mostly wait.
  concurrency: 4,
  sortTestFiles: (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
  // A process for each file, because Node closes a thread's descriptors again at its end, even if another thread has
  // reused the numbers. A crash also ends only its own file.
  workerThreads: false,
};

function rank(file) {
  if (file.includes(LAST)) return FIRST.length + 1;
  const at = FIRST.findIndex((folder) => file.includes(folder));
  return at < 0 ? FIRST.length : at;
}
