import { describe, expect, it } from 'vitest'
import { changesBetween } from '../../src/config/changes.ts'
import { servicesOf } from '../../src/config/upstream-fields.ts'
import { effectiveYaml, load } from './sources.ts'

const URL_A = 'http://127.0.0.1:8081'

/** The minimal configuration with these routes. */
function withRoutes(routes: string): string {
  return `upstream: {url: "http://127.0.0.1:8080", max_in_flight: 7, routes: ${routes}}\npassword: {file: p}\n`
}

describe('upstream.routes', () => {
  it('gives each service what upstream says, but for what must not go to another program', () => {
    const { routes, ...main } = load({
      file: withRoutes(`{/a/: {url: "${URL_A}", parser: strict}}`),
    }).upstream
    const [, route] = servicesOf({ ...main, headers: { 'X-Key': 'secret' }, routes })
    expect(route?.service).toMatchObject({ maxInFlight: 7, parser: 'strict', headers: {}, auth: 'off' })
    expect(route?.service.url.origin).toBe(URL_A)
  })

  it('H172 leaves out for each service what upstream leaves out, unless the service itself sends it', () => {
    const upstream = `url: "http://127.0.0.1:8080", headers: {X-Key: secret, Via: null, Client-IP: null}`
    const routes = `{/a/: {url: "${URL_A}", headers: {A: b, client-ip: c}}}`
    const file = `upstream: {${upstream}, routes: ${routes}}\npassword: {file: p}\n`
    const [, route] = servicesOf(load({ file }).upstream)
    expect(route?.service.headers).toEqual({ A: 'b', 'client-ip': 'c', Via: null })
  })

  it('can be overridden in part from the command line', () => {
    const sets = ['upstream.routes./a/.max_in_flight=2', `upstream.routes./b.url=${URL_A}`]
    const { routes } = load({ file: withRoutes(`{/a/: {url: "${URL_A}"}}`), sets }).upstream
    expect(routes['/a/']?.maxInFlight).toBe(2)
    expect(routes['/b']?.url.origin).toBe(URL_A)
  })

  it('can be set from the command line under paths with dots', () => {
    const sets = [
      `upstream.routes./v1.0/x.y.url=${URL_A}`,
      'upstream.routes./v1.0/x.y.headers.X-A.b=c',
      'upstream.routes./v1.0/x.y.health.path=/x',
    ]
    const route = load({ sets }).upstream.routes['/v1.0/x.y']
    expect(route?.url.origin).toBe(URL_A)
    expect(route?.headers).toEqual({ 'X-A.b': 'c' })
    expect(route?.health.path).toBe('/x')
  })

  it('appears in the effective configuration with masked secrets, and loads again', () => {
    const file = withRoutes(`{/a/: {url: "${URL_A}", headers: {X-Key: hunter2}}}`)
    const page = effectiveYaml({ file })
    expect(page).not.toContain('hunter2')
    expect(page).toContain('X-Key: "***"')
    expect(effectiveYaml({ file: page })).toBe(page)
  })

  it('is listed as one key if it changes', () => {
    const [before, after] = [`{/a/: {url: "${URL_A}"}}`, `{/b/: {url: "${URL_A}"}}`].map((routes) =>
      load({ file: withRoutes(routes) }),
    )
    if (before === undefined || after === undefined) throw new Error('two are loaded')
    expect(changesBetween(before, after)).toEqual(['upstream.routes'])
  })
})
