// The process that isolated.ts starts: `isolated-process.ts MODULE ROW...` runs `measure` of the module.

import { inspect } from 'node:util';
import { benchOf } from './bench.ts';
import { answer, over } from './parent.ts';
import type { Bench, Row } from './row.ts';
import { cleanAll } from './scratch.ts';

export interface IsolatedModule {
  readonly measure: (bench: Bench, selected: ReadonlySet<string>) => Promise<void>;
}

export type IsolatedMessage =
  | { readonly progress: string }
  | { readonly rows: readonly Row[] }
  | { readonly isOver: true }
  | { readonly failed: string };

const [module = '', ...selected] = process.argv.slice(2);
const send = (message: IsolatedMessage): void => answer(message);
const bench = benchOf(
  process.env,
  (progress) => send({ progress }),
  (...rows) => send({ rows }),
);

void over.then(cleanAll).finally(() => process.exit());
try {
  const { measure } = (await import(module)) as IsolatedModule;
  await measure(bench, new Set(selected));
  send({ isOver: true });
} catch (error) {
  send({ failed: inspect(error) });
}
