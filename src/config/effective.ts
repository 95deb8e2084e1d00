import { encode } from './decode.ts'
import type { Config } from './schema.ts'
import { schema } from './schema.ts'
import type { ServiceConfig } from './upstream-fields.ts'
import type { HeaderValue } from './value-field.ts'
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
  const { upstream } = config
  const routes = Object.entries(upstream.routes).map(([path, route]) => [path, maskedService(route)] as const)
  return {
    ...config,
    upstream: { ...upstream, ...maskedService(upstream), routes: Object.fromEntries(routes) },
  }
}

function maskedService(service: ServiceConfig): ServiceConfig {
  const headers = Object.entries(service.headers).map(([name, value]) => [name, maskedHeader(value)] as const)
  return { ...service, headers: Object.fromEntries(headers) }
}

/** The path of a secret is no secret. */
function maskedHeader(value: HeaderValue): HeaderValue {
  return typeof value === 'string' ? MASK : value
}
