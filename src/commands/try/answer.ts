import type { IncomingMessage } from 'node:http'
import { CONTROLS } from '../../config/address.ts'
import { SetupError } from '../../system/setup-error.ts'
import { escaped } from '../../system/text.ts'

/** Text of a server, in which no control character moves the cursor of a terminal. */
export function printable(text: string): string {
  return escaped(text, CONTROLS)
}

/** The error for a response 429. `key`: the limit in the configuration. */
export function tooMany({ headers }: IncomingMessage, key: string): SetupError {
  const { 'retry-after': wait } = headers
  const remedy = wait === undefined ? 'try again later' : `try again in ${printable(wait)} s`
  return new SetupError(`${key}: too many requests came from this address`, { exitCode: 1, remedy })
}
