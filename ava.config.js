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

export default {
  // The tests in test/image boot a machine for minutes: `make image` and `make test-image` run them.
  // `make soak` sets SOAK_MINUTES; the soak of every kind of change at once is not a test of `make test` yet, because it still
  // fails some requests on a busy host (test/real/soak-all.seeds.txt).
  files: process.env.IMAGE_TESTS
    ? ['test/image/*.test.ts']
    : [
        'test/**/*.test.ts',
        '!test/image/**',
        ...(process.env.SOAK_MINUTES ? [] : ['!test/real/soak-all.test.ts']),
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
  const at = FIRST.findIndex((folder) => file.includes(folder));
  return at < 0 ? FIRST.length : at;
}
