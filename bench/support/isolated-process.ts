// The process of isolated.ts: `isolated-process.ts MODULE ROW...` runs `measure` of the module.

import { inspect } from 'node:util';
import { benchOf } from './bench.ts';
import { answer, over } from './parent.ts';
import type { Bench, Row } from './row.ts';
import { cleanAll } from './scratch.ts';

export interface IsolatedModule {
  readonly measure: (bench: Bench, wanted: ReadonlySet<string>) => Promise<readonly Row[]>;
}

export type IsolatedMessage =
  | { readonly said: string }
  | { readonly rows: readonly Row[] }
  | { readonly failed: string };

const [module = '', ...wanted] = process.argv.slice(2);
const bench = benchOf(process.env, (said) => tell({ said }));

void over.then(cleanAll).finally(() => process.exit());
try {
  const { measure } = (await import(module)) as IsolatedModule;
  tell({ rows: await measure(bench, new Set(wanted)) });
} catch (error) {
  tell({ failed: inspect(error) });
}

function tell(message: IsolatedMessage): void {
  answer(message);
}
