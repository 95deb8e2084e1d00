import type { Config } from './config.ts'

/** What a reload puts into effect; every other key needs a restart. Dotted, as they stand in the file. */
const LIVE = [
  'limits.api',
  'limits.oauth',
  'limits.ietf_headers',
  'oauth.revocation_path',
  'public_paths',
  'enforce',
  'tokens.capacity',
  'tokens.access_lifetime',
  'tokens.refresh_lifetime',
  'tokens.rotate_refresh',
  'tokens.refresh_grace',
  'upstream.headers',
  'upstream.host',
  'listen.trusted_proxies',
  'listen.tls.cert',
  'listen.tls.key',
  'listen.body_timeout',
  'realm',
  'status_codes',
  'log.level',
  'log.access',
  'shutdown_grace',
]

export interface Changes {
  /** Keys that differ and take effect at once. */
  readonly live: readonly string[]
  /** Keys that differ and wait for a restart. */
  readonly restart: readonly string[]
}

/** Which keys differ between two configurations, by what it takes to put them into effect. */
export function changesBetween(before: Config, after: Config): Changes {
  const changed = changedKeys(before, after, '')
  const isLive = (key: string): boolean =>
    (key === 'listen.tls' && before.listen.tls !== 'off' && after.listen.tls !== 'off') ||
    LIVE.some((live) => key === live || key.startsWith(`${live}.`))
  return { live: changed.filter(isLive), restart: changed.filter((key) => !isLive(key)) }
}

/** Told as a whole: below it stand the operator's own names. */
const WHOLE = 'upstream.routes'

function changedKeys(before: unknown, after: unknown, path: string): string[] {
  if (path === WHOLE || !isSection(before) || !isSection(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path]
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap((name) => {
    // The names of headers are the operator's own.
    const key = path === 'upstream.headers' ? name : snakeCase(name)
    return changedKeys(before[name], after[name], path === '' ? key : `${path}.${key}`)
  })
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
