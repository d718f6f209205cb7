// The content of the status page, as the agent sends it to a browser that has just opened it.

import type { PageView } from '../../../health/page-model.ts';

/** `query`: `open=default%2Fweb`. */
export async function readPage(url: string | undefined, query = ''): Promise<PageView> {
  if (url === undefined) throw new Error('The agent does not listen yet');
  const aborting = new AbortController();
  const response = await fetch(`${url}/events?${query}`, { signal: aborting.signal });
  const parts: Record<string, unknown> = {};
  let text = '';
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      for (const [, name = '', data = ''] of text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm))
        parts[name] = JSON.parse(data) ?? undefined;
      // The last one.
      if ('detail' in parts) return parts as unknown as PageView;
    }
  } finally {
    aborting.abort();
  }
  throw new Error(`The page ended: ${text}`);
}
