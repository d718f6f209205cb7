export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  timeout: '5m',
  concurrency: 2,
  // Each file in a process of its own, as the agent runs: Node closes what a thread has opened once more when that ends,
  // even where a socket has closed it, and would take another thread's descriptor. A crash ends one file only.
  workerThreads: false,
};
