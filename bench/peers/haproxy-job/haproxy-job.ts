import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hashSync } from 'bcryptjs'
import type { VerifyOptions } from '../../../src/verify/options.ts'
import { freePort } from '../../child.ts'
import { PASSWORD } from '../../sidecar.ts'
import { bindOf, haproxyVersion, startHaproxy } from '../haproxy.ts'
import type { Job } from '../job.ts'

type Limits = VerifyOptions['limits']

/** Tenths of a second since then fit into 32 bits until 2039 (Unix time in ms). */
const TAGS_FROM = Date.UTC(2026, 0)

function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}

/** What a variant has of its own. */
interface Variant {
  /** Rules that count the request in the window of `txn.client`, and set `txn.remaining` and `txn.reset`; past the limit `txn.retry`. */
  readonly count: (limits: Limits) => string
  /** Lines of `global`. */
  readonly global: (state: string, limits: Limits) => string
  /** Rules that set `txn.shown`: the request shows a token; and `txn.admitted`: it is a live access token. */
  readonly identify: (state: string) => string
  /** Sections besides. */
  readonly tables: (limits: Limits) => string
}

/** HAProxy that counts and checks each request in Lua. */
export const haproxyLuaJob: Job = haproxyJob('haproxy with Lua', 'all of it in Lua', {
  global: (_state, { api, oauth }) => `
  setenv API_LIMIT ${api.requests}/${api.window}
  setenv OAUTH_LIMIT ${oauth.requests}/${oauth.window}
  lua-load ${script('tokens.lua')}
  lua-load ${script('gate.lua')}`,
  count: () => `
  http-request lua.count oauth if is_token
  http-request lua.count api unless is_token`,
  identify: () => `
  http-request lua.identify`,
  tables: () => '',
})

/** HAProxy that needs Lua for `/oauth/token` alone: tokens are in a map that Lua writes, windows in stick tables. */
export const haproxyLoginsJob: Job = haproxyJob(
  'haproxy with Lua for logins',
  'logins in Lua, a map, stick tables',
  {
    global: (state) => `
  setenv TOKEN_MAP ${state}/access
  lua-load ${script('tokens.lua')}`,
    count: ({ api, oauth }) => `
  http-request track-sc0 var(txn.client) table oauth if is_token
  http-request track-sc0 var(txn.client) table api unless is_token
  # Times in tenths of a second: a tag has 32 bits.
  http-request set-var(txn.now) date(0,ms),sub(${TAGS_FROM}),div(100)
  http-request set-var(txn.closes) sc_get_gpt0(0)
  http-request set-var(txn.opens) bool(true) if { var(txn.closes),sub(txn.now) -m int le 0 }
  acl opens var(txn.opens) -m bool
  http-request set-var(txn.counted) sc_clr_gpc0(0) if opens
  http-request set-var(txn.closes) var(txn.now),add(${10 * api.window}) if opens !is_token
  http-request set-var(txn.closes) var(txn.now),add(${10 * oauth.window}) if opens is_token
  http-request sc-set-gpt0(0) var(txn.closes) if opens
  http-request set-var(txn.counted) sc_inc_gpc0(0)
  http-request set-var(txn.remaining) int(${api.requests}),sub(txn.counted) unless is_token
  http-request set-var(txn.remaining) int(${oauth.requests}),sub(txn.counted) if is_token
  http-request set-var(txn.retry) var(txn.closes),sub(txn.now),add(9),div(10) if { var(txn.remaining) -m int lt 0 }
  http-request set-var(txn.remaining) int(0) if { var(txn.remaining) -m int lt 0 }
  http-request set-var(txn.reset) var(txn.closes),add(9),div(10),add(${TAGS_FROM / 1000})`,
    identify: (state) => `
  http-request set-var(txn.shown) bool(true) if { http_auth_bearer -m found }
  http-request set-var(txn.second) date()
  acl is_live http_auth_bearer,sha2(256),hex,map_str_int(${state}/access,0),sub(txn.second) -m int gt 0
  http-request set-var(txn.admitted) bool(true) if { req.fhdr_cnt(Authorization) eq 1 } is_live`,
    tables: ({ api, oauth }) =>
      [api, oauth]
        .map(
          ({ window }, at) => `
backend ${at === 0 ? 'api' : 'oauth'}
  stick-table type ipv6 size 100k expire ${2 * window}s store gpc0,gpt0`,
        )
        .join(''),
  },
)

const FAILED = `HTTP/1.1 500 Internal Server Error\r
Content-Type: application/json;charset=UTF-8\r
Cache-Control: no-store\r
\r
{"error":"upstream_unavailable","error_description":"The device does not respond."}`

function haproxyJob(name: string, does: string, variant: Variant): Job {
  return {
    name,
    does,
    version: haproxyVersion,
    async start({ devicePort, core }, { limits, pair, state }) {
      const port = await freePort()
      await writeFile(join(state, 'failed.http'), FAILED)
      const bind = await bindOf(port, pair)
      const scheme = pair === undefined ? 'http' : 'https'
      const text = configuration({ bind, scheme, devicePort, limits, state, variant })
      const child = await startHaproxy(port, text, { core, outputTo: join(state, 'log') })
      return { url: `${scheme}://127.0.0.1:${port}`, children: [child] }
    },
  }
}

/** Of bcrypt, with a cost of 8: HAProxy answers nothing else while it checks a password. The same at each start, so tokens outlive it. */
const SALT = '$2b$08$3n0ghOvzXNPbL1LqcbSb5u'

interface Settings {
  readonly bind: string
  readonly scheme: 'http' | 'https'
  readonly devicePort: number
  readonly limits: Limits
  /** Has `failed.http`. */
  readonly state: string
  readonly variant: Variant
}

function configuration({ bind, scheme, devicePort, limits, state, variant }: Settings): string {
  const stored = hashSync(PASSWORD, SALT)
  const refusal = (status: number, code: string, sentence: string): string =>
    `return status ${status} content-type "application/json;charset=UTF-8" hdr Cache-Control no-store string '{"error":"${code}","error_description":"${sentence}"}'`
  return `global
  nbthread 1
  maxconn 4096
  log stdout format raw local0
  setenv STATE ${state}
  setenv PASSWORD_ID ${createHash('sha256').update(stored).digest('hex')}${variant.global(state, limits)}
defaults
  mode http
  log global
  option httplog
  timeout connect 5s
  timeout client 1h
  timeout server 30s
  timeout http-request 20s
userlist device
  user admin password ${stored}
frontend public
  bind ${bind}
  acl is_token path -m str /oauth/token
  acl is_refused var(txn.retry) -m found
  acl is_shown var(txn.shown) -m bool
  acl is_admitted var(txn.admitted) -m bool
  http-request set-var(txn.client) src,ipmask(32,64)${variant.count(limits)}
  http-after-response set-header X-RateLimit-Limit ${limits.api.requests} unless { var(txn.oauth) -m bool }
  http-after-response set-header X-RateLimit-Limit ${limits.oauth.requests} if { var(txn.oauth) -m bool }
  http-after-response set-header X-RateLimit-Remaining %[var(txn.remaining)]
  http-after-response set-header X-RateLimit-Reset %[var(txn.reset)]
  http-after-response set-header Date %[date,http_date] unless { res.fhdr(Date) -m found }
  http-after-response set-header Retry-After %[var(txn.retry)] if { var(txn.retry) -m found }
  http-request set-var(txn.oauth) bool(true) if is_token
  http-request ${refusal(429, 'rate_limited', 'The rate limit is exceeded.')} if is_refused
  http-request ${refusal(400, 'invalid_request', 'There must be one Host.')} unless { req.fhdr_cnt(Host) eq 1 }
  http-request wait-for-body time 10s at-least 8193 if is_token
  http-request lua.answer if is_token${variant.identify(state)}
  http-after-response set-header WWW-Authenticate 'Bearer realm="device", error="invalid_token"' if { var(txn.unauthorized) -m str shown }
  http-after-response set-header WWW-Authenticate 'Bearer realm="device"' if { var(txn.unauthorized) -m str missing }
  http-request set-var(txn.unauthorized) str(shown) if is_shown !is_admitted
  http-request set-var(txn.unauthorized) str(missing) unless is_shown or is_admitted
  http-request ${refusal(401, 'invalid_token', 'A valid access token is required.')} unless is_admitted
  http-request del-header Authorization
  http-request del-header Forwarded
  http-request del-header X-Forwarded -m beg
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto ${scheme}
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  http-request set-header X-Request-Id %[uuid()]
  http-request set-header Via "1.1 haproxy"
  default_backend device
backend device
  errorfile 502 ${state}/failed.http
  errorfile 503 ${state}/failed.http
  errorfile 504 ${state}/failed.http
  server device 127.0.0.1:${devicePort} pool-max-conn 256${variant.tables(limits)}
`
}
