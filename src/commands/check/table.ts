import { configWarnings } from '../../compose/config-warnings.ts'
import type { Loaded } from '../../config/load.ts'
import { ADDRESSES } from './addresses.ts'
import { CERTIFICATE } from './certificate.ts'
import { DEVICE } from './device.ts'
import { HEADERS } from './headers.ts'
import { MEMORY } from './memory.ts'
import { PLACES } from './most-places.ts'
import { NEIGHBOURS } from './neighbours.ts'
import { PAGES } from './pages.ts'
import type { Asked, CheckOutcome } from './part.ts'
import { HOOK } from './password-hook.ts'
import { LIVE_PAGE, PASSWORD } from './passwords.ts'
import { SIGNING_IN } from './signing-in.ts'
import { STATE_FOLDER } from './state-dir.ts'
import { STORE } from './store.ts'
import { UPLOADS } from './uploads.ts'

/** All parts of `check`, in the order in which it prints their results. */
export const TABLE = {
  password: PASSWORD,
  'password hook': HOOK,
  certificate: CERTIFICATE,
  'state folder': STATE_FOLDER,
  memory: MEMORY,
  'live page': LIVE_PAGE,
  'shared store': STORE,
  address: ADDRESSES,
  'other instances': NEIGHBOURS,
  headers: HEADERS,
  places: PLACES,
  device: DEVICE,
  'signing in': SIGNING_IN,
  page: PAGES,
  uploads: UPLOADS,
} as const

/**
 * Runs the table, then yields the warnings of a start. Throws `SetupError` before the first result if a path of `asked` does not belong to
 * one service.
 *
 * @param during awaits the result of a check, by its name
 * @param isReload only the parts that a reload reads and that `ExecReload` can judge: systemd gives it no credentials, so it may be unable to
 *   read the files of passwords, which the sidecar judges at its reload
 */
export function examine(
  asked: Asked,
  isReload: boolean,
  locationOf: Loaded['locationOf'],
  during: <T>(name: string, result: Promise<T>) => Promise<T>,
): AsyncIterable<CheckOutcome> {
  const runs = Object.values(TABLE)
    .filter(({ withReload }) => withReload || !isReload)
    .flatMap((part) => part.runs(asked, locationOf))
  return (async function* () {
    for (const { name, start } of runs) yield await during(name, start())
    if (isReload) return
    for (const { key, file, reason, meaning, remedy } of await configWarnings(asked.config, asked.file)) {
      const message = file === undefined ? reason : `${file}: ${reason}`
      yield { result: { name: key, result: 'warning', message, meaning, remedy }, exitCode: 0 }
    }
  })()
}
