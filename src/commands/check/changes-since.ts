import type { Loaded } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { type ServiceConfig, servicesOf } from '../../config/upstream-fields.ts'
import { readTokenFileVersion } from '../../tokens/set-aside.ts'
import { type Check, readIfPossible } from './finding.ts'

/** The release whose differences to 0.1.0 stand here. */
const RELEASE = '1.0.0'

/** Something that behaves differently since that release. */
interface Change {
  readonly key: string
  /** What is different. */
  readonly change: string
  readonly meaning: string
  /** What keeps the former behaviour, or what to look at. */
  readonly remedy: string
}

/** The version that wrote each former version of the token file. */
const WRITERS: ReadonlyMap<number, string> = new Map([
  [2, '0.1.0'],
  [3, '0.1.0'],
])

/**
 * One warning for each thing that behaves differently since a version, with this configuration.
 *
 * @param since what `--since` says; undefined: the version that wrote the token file of `state_dir`, if it was an earlier one
 */
export function changeChecks({ config, locationOf }: Loaded, since: string | undefined): readonly Check[] {
  const version = since ?? writerOf(config.stateDir)
  if (version === undefined || !isBefore(version, RELEASE)) return []
  const isSet = (key: string): boolean => locationOf(key) !== undefined
  const changes = [...changedDefaults(config, isSet), ...changedBehaviour(config)]
  return changes.map(({ key, change, meaning, remedy }) => ({
    name: key,
    key,
    meaning,
    remedy,
    run: async () => ({ warning: `${change} (since ${RELEASE})` }),
  }))
}

/** The earlier version that wrote the token file; undefined without one, and for a file that cannot be read: `stateCheck` says so. */
function writerOf(stateDir: string): string | undefined {
  return WRITERS.get(readIfPossible(() => readTokenFileVersion(stateDir)) ?? 0)
}

/** Whether a version is before another one. A candidate of a release counts as that release. */
function isBefore(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0
}

/** The defaults that are different, of keys that the configuration does not set. */
function changedDefaults({ browser, upstream }: Config, isSet: (key: string) => boolean): readonly Change[] {
  const changes = servicesOf(upstream).flatMap(({ path, service }) =>
    changedServiceDefaults(path.join('.'), service),
  )
  if (browser.login === 'on') {
    changes.push({
      key: 'browser.idle',
      change: '12h, and was without end',
      meaning: 'a browser logs in again after 12 hours without a request',
      remedy: 'set it to a longer time, at most tokens.refresh_lifetime',
    })
  }
  return changes.filter(({ key }) => !isSet(key))
}

function changedServiceDefaults(
  key: string,
  { idleTimeout, tunnelIdleTimeout }: Pick<ServiceConfig, 'idleTimeout' | 'tunnelIdleTimeout'>,
): Change[] {
  return [
    {
      key: `${key}.buffer_uploads`,
      change: 'auto, and was off',
      meaning:
        'uploads of unknown length are collected up to 1 MiB, and the device gets them with their length',
      remedy: 'set it to off for clients that read the response while they still send',
    },
    {
      key: `${key}.max_in_flight`,
      change: 'auto, and was 64',
      meaning: 'Postern learns how many requests the device can take at once, and others wait',
      remedy: 'set it to 64 to have the former bound',
    },
    // Where it is longer than before, no program loses its connection.
    ...(idleTimeout <= tunnelIdleTimeout
      ? []
      : [
          {
            key: `${key}.tunnel_idle_timeout`,
            change: '5m, and was idle_timeout',
            meaning: 'a WebSocket is closed after 5 minutes without a byte',
            remedy: 'set it to the time of idle_timeout, if programs ping less often',
          },
        ]),
  ]
}

/** The differences that are no changed default. Mistakes that the release refuses are errors of their own. */
function changedBehaviour({ admin, listen }: Config): readonly Change[] {
  const changes: Change[] = []
  if (admin.address !== 'off' && admin.address.kind === 'tcp' && admin.passwordFile === undefined) {
    changes.push({
      key: 'admin.password_file',
      change: 'the live page revokes only with a password',
      meaning: 'without one it shows everything and revokes nothing; postern revoke works as before',
      remedy: 'postern hash-password > FILE, and name the file here',
    })
  }
  if (listen.tls !== 'off') {
    changes.push({
      key: 'listen.tls',
      change: 'TLS 1.2 needs ECDHE and AEAD',
      meaning: 'a client without them does not connect, such as Windows before 10 with an RSA certificate',
      remedy: 'look for such clients in docs/clients.md',
    })
  }
  changes.push({
    key: 'status_codes',
    change: 'a navigation of a browser gets refusals as pages, with the status as before',
    meaning: 'a program that sends Accept: text/html and no token gets them, too, and no JSON',
    remedy: 'let such a program send Accept: application/json',
  })
  return changes
}
