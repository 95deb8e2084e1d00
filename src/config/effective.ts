import type { Config, HeaderValue } from './config.ts'
import { encode } from './decode.ts'
import { schema } from './schema.ts'
import { writeYaml } from './yaml.ts'

const MASK = '***'

/**
 * The configuration as it is in effect, as YAML in the form of the file, defaults and all. It reads back as the same
 * configuration, except for secrets, which are masked.
 */
export function effectiveYaml(config: Config): string {
  return writeYaml(encode(schema, masked(config)))
}

function masked(config: Config): Config {
  const { upstream, tokens } = config
  const headers = Object.entries(upstream.headers).map(([name, value]) => [name, maskedHeader(value)])
  return {
    ...config,
    upstream: { ...upstream, headers: Object.fromEntries(headers) },
    tokens: { ...tokens, store: maskedStore(tokens.store) },
  }
}

/** The path of a secret is no secret. */
function maskedHeader(value: HeaderValue): HeaderValue {
  return typeof value === 'string' ? MASK : value
}

function maskedStore(store: string): string {
  const url = URL.parse(store)
  if (url === null || url.password === '') return store
  url.password = MASK
  return url.href
}
