// Goes through the pages of a list. Asks by what it is given; no socket, no clock.

import { HeadgateError } from '../../base/errors.ts';
import type { ListMetadata } from './list-items.ts';

export type PageQuery = Readonly<Record<string, string>>;

/** Objects of one page, as client-go asks for them. */
export const PAGE = '500';

/**
 * `page` gives undefined where the place to go on from has expired (410): `restart` is called, and the whole list
 * asked for at once, as client-go does; it cannot expire. Errors: those of `page`, API_REFUSED where it does.
 */
export async function listPages(
  first: PageQuery,
  page: (query: PageQuery) => Promise<ListMetadata | undefined>,
  restart: () => void,
): Promise<ListMetadata> {
  let query = first;
  for (;;) {
    const metadata = await page(query);
    if (metadata?.continue === '') return metadata;
    if (metadata !== undefined) query = { limit: PAGE, continue: metadata.continue };
    else if (query.limit === undefined)
      throw new HeadgateError('API_REFUSED', 'A whole list has expired: 410');
    else {
      query = {};
      restart();
    }
  }
}
