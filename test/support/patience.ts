/**
 * How long (ms) a test waits for what must happen. It ends what hangs, and promises nothing: a machine with other work to do may take
 * ten times as long as an idle one.
 */
export const PATIENCE = 60_000
