import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Collects all garbage of this thread. What a `WeakRef` was asked for in this turn stays until the next. */
export const collectGarbage: () => void = runInNewContext('gc')
