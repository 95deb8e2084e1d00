import type { ServiceConfig, UpstreamConfig } from './upstream-fields.ts'

/** A service of the device, and the keys in the file under which it stands. */
export interface NamedService {
  readonly path: readonly string[]
  readonly service: ServiceConfig
}

/** The services of the device, the main one first. */
export function servicesOf(upstream: UpstreamConfig): readonly NamedService[] {
  const routes = Object.entries(upstream.routes)
  return [
    { path: ['upstream'], service: upstream },
    ...routes.map(([path, service]) => ({ path: ['upstream', 'routes', path], service })),
  ]
}
