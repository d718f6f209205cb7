// Flags for files in a folder that a daemon's user may write, too: a link is not followed, and a pipe does not block.

import { constants } from 'node:fs';

export const SAFELY = constants.O_NOFOLLOW | constants.O_NONBLOCK;
