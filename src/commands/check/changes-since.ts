import type { Loaded } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { servicesOf } from '../../config/upstream-fields.ts'
import { isBug } from '../../system/setup-error.ts'
import { readTokenFileVersion } from '../../tokens/set-aside.ts'
import type { Check } from './finding.ts'

/** Something that behaves differently since a version, for this configuration. */
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
  if (version === undefined || !isBefore(version, '1.0.0')) return []
  const isSet = (key: string): boolean => locationOf(key) !== undefined
  return changesOf1(config, isSet).map(({ key, change, ...hints }) => ({
    ...{ name: key, key, ...hints },
    run: async () => ({ warning: `${change} (since 1.0.0)`, ...hints }),
  }))
}

/** The earlier version that wrote the token file; undefined without one, and for a file that cannot be read: `stateCheck` says so. */
function writerOf(stateDir: string): string | undefined {
  try {
    return WRITERS.get(readTokenFileVersion(stateDir) ?? 0)
  } catch (error) {
    if (isBug(error)) throw error
    return undefined
  }
}

/** Whether a version is before another one. A candidate of a release counts as that release. */
function isBefore(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0
}

/** What 1.0.0 does differently from 0.1.0. Mistakes that it refuses are errors of their own. */
function changesOf1(config: Config, isSet: (key: string) => boolean): readonly Change[] {
  const { listen, admin, browser, upstream } = config
  const ofServices = servicesOf(upstream).flatMap(({ path }): readonly Change[] => {
    const [uploads, places] = ['buffer_uploads', 'max_in_flight'].map((key) => [...path, key].join('.'))
    return [
      {
        key: uploads ?? '',
        change: 'auto, and was off',
        meaning:
          'uploads of unknown length are collected up to 1 MiB, and the device gets them with their length',
        remedy: 'set it to off for clients that read the response while they still send',
      },
      {
        key: places ?? '',
        change: 'auto, and was 64',
        meaning: 'Postern learns how many requests the device can take at once, and others wait',
        remedy: 'set it to 64 to have the former bound',
      },
    ].filter(({ key }) => !isSet(key))
  })
  const always: readonly (Change & { readonly applies: boolean })[] = [
    {
      key: 'admin.password_file',
      applies: admin.address !== 'off' && admin.address.kind === 'tcp' && admin.passwordFile === undefined,
      change: 'the live page revokes only with a password',
      meaning: 'without one it shows everything and revokes nothing; postern revoke works as before',
      remedy: 'postern hash-password > FILE, and name the file here',
    },
    {
      key: 'listen.tls',
      applies: listen.tls !== 'off',
      change: 'TLS 1.2 needs ECDHE and AEAD',
      meaning: 'a client without them does not connect, such as Windows before 10 with an RSA certificate',
      remedy: 'look for such clients in docs/clients.md',
    },
    {
      key: 'browser.idle',
      applies: browser.login === 'on' && !isSet('browser.idle'),
      change: '12h, and was without end',
      meaning: 'a browser logs in again after 12 hours without a request',
      remedy: 'set it to a longer time, at most tokens.refresh_lifetime',
    },
    {
      key: 'status_codes',
      applies: true,
      change: 'a navigation of a browser gets refusals as pages, with the status as before',
      meaning: 'a program that sends Accept: text/html and no token gets them, too, and no JSON',
      remedy: 'let such a program send Accept: application/json',
    },
  ]
  return [
    ...ofServices,
    ...always.filter(({ applies }) => applies).map(({ applies: _, ...change }) => change),
  ]
}
