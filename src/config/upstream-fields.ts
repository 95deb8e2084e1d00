import { isAuthority, parseUpstreamUrl, plainPathProblem, targetProblem } from './address.ts'
import { authField } from './auth-fields.ts'
import { either, named, optional, section, type ValueOf } from './field.ts'
import { headers, leftOut, without } from './header-field.ts'
import { responseHeaders } from './response-header-field.ts'
import { deviceTlsField } from './tls-field.ts'
import {
  duration,
  flag,
  integer,
  list,
  measured,
  oneOf,
  plainText,
  size,
  text,
  textOrNull,
  unless,
} from './value-fields.ts'
import type { Parsed } from './yaml.ts'

const queue = section({
  size: integer(0, 1_000_000, { default: 128 }),
  timeout: duration('1ms', '1h', { default: '5s' }),
})

const MOST = 100_000
const MUST = `must be auto, or a whole number from 1 to ${MOST}`

const fixedOrAuto = measured<number | 'auto'>({
  type: `whole number, 1 to ${MOST}, or \`auto\``,
  must: MUST,
  pattern: /^auto$/,
  parse(given) {
    const fits = typeof given === 'number' && Number.isInteger(given) && given >= 1 && given <= MOST
    return fits || given === 'auto' ? { value: given } : { problem: MUST }
  },
})

/**
 * So few connections break no device that has a usual TCP stack: lwIP's default is five (`MEMP_NUM_TCP_PCB` in its `opt.h`). One of them is
 * left for another program.
 */
const CAREFUL = { min: 1, max: 4 }
/** `auto` finds out how many the device takes, which may break it once. */
const AUTO = { min: 1, max: 64 }

const learned = section({
  min: integer(1, MOST, { default: CAREFUL.min }),
  max: integer(1, MOST, { default: CAREFUL.max }),
})

const places = either(fixedOrAuto, learned, `${MUST}, or a mapping with min and max`, { default: CAREFUL })

const health = section({
  path: textOrNull('path, or `null`', 'must be a path that begins with /, or null', {
    default: null,
    problemOf: (given) => targetProblem(given) && `${targetProblem(given)}, or null`,
  }),
  interval: duration('10ms', '1h', { default: '10s' }),
})

const share = section({
  paths: list('paths', 'must be text', { default: [], problemOf: plainPathProblem }),
  for: duration('0s', '1h', { default: '0s' }),
})

/** The keys that a route never takes over from `upstream`: the address, and values that must not reach another program. */
const own = {
  url: text({
    type: 'URL',
    must: "must be the device's address, such as http://127.0.0.1:8080",
    parse: parseUpstreamUrl,
  }),
  headers: headers({ default: {} }),
  tls: deviceTlsField,
  auth: authField,
  health,
}

/** The keys that a route takes over from `upstream` unless it sets them. */
const varying = {
  host: plainText('`preserve`, `target`, or a host', {
    default: 'preserve',
    problemOf: unless(isAuthority, 'must be preserve, target, or a host such as device.local:8080'),
  }),
  parser: oneOf(['strict', 'tolerant', 'auto'], { default: 'auto' }),
  version: oneOf(['1.0', '1.1'], { default: '1.1', must: 'must be "1.0" or "1.1", in quotes' }),
  responseTimeout: duration('1ms', '1d', { default: '30s' }),
  idleTimeout: duration('1ms', '1d', { default: '60s' }),
  reuse: oneOf(['shared', 'never'], { default: 'shared' }),
  bufferUploads: size('1B', '1GiB', { default: 'auto' }, ['auto', 'off']),
  maxBody: size('1B', '1024GiB', { default: 'off' }, ['off']),
  finishUploads: flag({ default: false }),
  maxInFlight: places,
}

const NAME = 'must be a host such as fritz.box or device.local:8080'

/** The keys that hold for all services. */
const common = {
  responseHeaders: responseHeaders({ default: {} }),
  names: list('hosts', NAME, { default: [], problemOf: unless(isAuthority, NAME) }),
  rewrite: oneOf(['on', 'off'], { default: 'off', must: 'must be on or off' }),
  connectTimeout: duration('1ms', '1h', { default: '5s' }),
  tunnelIdleTimeout: duration('1ms', '1d', { default: '5m' }),
  maxTunnels: integer(1, 100_000, { default: 64 }),
  streamAfter: duration('1ms', '1d', { default: '2s' }),
  maxStreams: integer(1, 100_000, { default: 64 }),
  queue,
  share,
}

const { host, parser, version, responseTimeout, idleTimeout, reuse } = varying
const { bufferUploads, maxBody, finishUploads, maxInFlight } = varying

const routeField = section({
  ...own,
  headers: optional(own.headers),
  host: optional(host),
  parser: optional(parser),
  version: optional(version),
  responseTimeout: optional(responseTimeout),
  idleTimeout: optional(idleTimeout),
  reuse: optional(reuse),
  bufferUploads: optional(bufferUploads),
  maxBody: optional(maxBody),
  finishUploads: optional(finishUploads),
  maxInFlight: optional(maxInFlight),
})

const serviceField = section({ ...own, ...varying, ...common })

export const upstreamField = section({
  ...own,
  ...varying,
  ...common,
  routes: named(routeField, routeProblem, { default: {}, type: 'mapping of paths to sections' }),
})

function routeProblem(path: string): string | undefined {
  return path === '/' ? 'must be longer than /, which upstream.url already serves' : plainPathProblem(path)
}

/** One service of the device: its address and its settings. */
export type ServiceConfig = ValueOf<typeof serviceField>

/** The device: its main service, and the services of `routes`. */
type UpstreamConfig = ValueOf<typeof upstreamField>

/** A service of the device, and the path of its section in the configuration. */
export interface NamedService {
  readonly path: readonly string[]
  readonly service: ServiceConfig
}

/**
 * All services of the device, the main service first. A route takes over the keys that it does not set from `upstream`. Of
 * `upstream.headers` it takes over only each `null`, because a value may be a secret of the main service.
 */
export function servicesOf(upstream: UpstreamConfig): readonly NamedService[] {
  const routes = Object.entries(upstream.routes)
  const unwanted = leftOut(upstream.headers)
  return [
    { path: ['upstream'], service: upstream },
    ...routes.map(([path, route]) => ({
      path: ['upstream', 'routes', path],
      service: { ...upstream, ...route, headers: without(unwanted, route.headers ?? {}) },
    })),
  ]
}

/**
 * The most streams and WebSockets that services have beside their places, each on a connection of its own. With one place, streams hold it.
 * HTTP/1.0 has no WebSockets.
 */
export function besidePlaces(
  services: readonly Pick<ServiceConfig, 'maxInFlight' | 'maxStreams' | 'maxTunnels' | 'version'>[],
): { readonly streams: number; readonly tunnels: number } {
  let [streams, tunnels] = [0, 0]
  for (const service of services) {
    if (placesBounds(service).max > 1) streams += service.maxStreams
    if (service.version !== '1.0') tunnels += service.maxTunnels
  }
  return { streams, tunnels }
}

/** Whether the places are so few that they break no device with a usual TCP stack: no more than by default. */
export function isCareful({ maxInFlight }: Pick<ServiceConfig, 'maxInFlight'>): boolean {
  return placesBounds({ maxInFlight }).max <= CAREFUL.max
}

export function isDefaultPlaces({ maxInFlight }: Pick<ServiceConfig, 'maxInFlight'>): boolean {
  const { min, max } = placesBounds({ maxInFlight })
  return min === CAREFUL.min && max === CAREFUL.max
}

/** Reads a number of places that a person typed: a whole number, or `auto`. */
export function parsePlaces(text: string): Parsed<number | 'auto'> {
  if (text === 'auto') return { value: text }
  const places = /^\d{1,6}$/.test(text) ? Number(text) : 0
  return places >= 1 && places <= MOST ? { value: places } : { problem: MUST }
}

/** The least and the most requests at a service at once; equal if `max_in_flight` is a number. */
export function placesBounds({ maxInFlight }: Pick<ServiceConfig, 'maxInFlight'>): ValueOf<typeof learned> {
  if (maxInFlight === 'auto') return AUTO
  return typeof maxInFlight === 'number' ? { min: maxInFlight, max: maxInFlight } : maxInFlight
}
