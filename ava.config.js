export default {
  // Those that boot a machine take minutes and have targets of their own.
  files: process.env.IMAGE_TESTS ? ['test/image/*.test.ts'] : ['test/**/*.test.ts', '!test/image/**'],
  extensions: ['ts'],
  timeout: '5m',
  // Those with real parts wait for most of their time: with two at a time, two processors had nothing to do for a third
  // of it, and all took 18 min in place of 13.
  concurrency: 3,
  // Each file in a process of its own, as the agent runs: Node closes what a thread has opened once more when that ends,
  // even where a socket has closed it, and would take another thread's descriptor. A crash ends one file only.
  workerThreads: false,
};
