/** The configuration, complete: every default filled in, every duration in milliseconds, every size in bytes. */
export interface Config {
  readonly listen: ListenConfig
  readonly admin: AdminConfig
  readonly upstream: UpstreamConfig
  readonly password: PasswordConfig
  readonly tokens: TokensConfig
  readonly limits: LimitsConfig
  readonly oauth: OauthConfig
  /** Paths that need no token: exact ones, and with a slash at the end prefixes. */
  readonly publicPaths: readonly string[]
  readonly enforce: boolean
  readonly stateDir: string
  readonly realm: string
  readonly statusCodes: 'contract' | 'http'
  readonly log: LogConfig
  readonly shutdownGrace: number
}

/** Where to listen. `host` carries no brackets; port 0 lets the kernel choose. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'fd'; readonly fd: number }

export interface TlsFiles {
  readonly cert: string
  readonly key: string
}

export interface ListenConfig {
  readonly address: Address
  readonly tls: 'auto' | 'off' | TlsFiles
  /** CIDRs or single addresses, as `http/ip.ts` reads them. */
  readonly trustedProxies: readonly string[]
  readonly handshakeTimeout: number
  readonly headerTimeout: number
  readonly bodyTimeout: number
  readonly idleTimeout: number
  readonly maxHeaderSize: number
  readonly maxHeaderCount: number
  readonly maxConnections: number
  readonly maxConnectionsPerClient: number
  readonly maxStreams: number
  readonly maxResets: number
  readonly maxControlFrames: number
  readonly maxQueuedBytes: number
}

export interface AdminConfig {
  readonly address: Address | 'off'
}

/** The device. `host` carries no brackets, `origin` does, and leaves out the default port. */
export type UpstreamUrl =
  | {
      readonly kind: 'tcp'
      readonly protocol: 'http' | 'https'
      readonly host: string
      readonly port: number
      readonly origin: string
    }
  | { readonly kind: 'unix'; readonly path: string; readonly origin: 'http://localhost' }

/** A header value as text, or the file that holds it. */
export type HeaderValue = string | { readonly file: string }

/** The device: the service that takes every path, and those that take some of them. */
export interface UpstreamConfig extends ServiceConfig {
  /** By path: exact ones, and with a slash at the end prefixes. */
  readonly routes: Readonly<Record<string, ServiceConfig>>
}

/** One service of the device: where it is, and how it wants to be treated. */
export interface ServiceConfig {
  readonly url: UpstreamUrl
  /** `preserve`, `target`, or the very `Host` to send. */
  readonly host: string
  readonly headers: Readonly<Record<string, HeaderValue>>
  readonly tls: UpstreamTlsConfig
  readonly auth: UpstreamAuthConfig
  readonly parser: 'strict' | 'tolerant' | 'auto'
  readonly connectTimeout: number
  readonly responseTimeout: number
  readonly idleTimeout: number
  readonly maxInFlight: number
  readonly maxTunnels: number
  readonly queue: QueueConfig
  readonly health: HealthConfig
}

export interface UpstreamTlsConfig {
  /** The path of a PEM file. */
  readonly ca?: string
  readonly insecure: boolean
}

/** How the sidecar signs in to the device. */
export type UpstreamAuthConfig =
  | 'off'
  | { readonly basic: HttpAuthConfig }
  | { readonly digest: HttpAuthConfig }
  | { readonly form: FormAuthConfig }

/** The file that holds a password. */
export interface PasswordFile {
  readonly file: string
}

export interface HttpAuthConfig {
  readonly user: string
  readonly password?: PasswordFile
  readonly checkPath: string
}

export interface FormAuthConfig {
  readonly user?: string
  readonly password?: PasswordFile
  readonly path: string
  readonly loginPage?: string
  readonly userField: string
  readonly passwordField: string
  /** Each as `name=value`. */
  readonly fields: readonly string[]
  readonly sessionCookie?: string
  readonly success: FormSuccessConfig
  readonly checkPath?: string
}

export interface FormSuccessConfig {
  readonly status?: number
  readonly location?: string
}

export interface QueueConfig {
  readonly size: number
  readonly timeout: number
}

export interface HealthConfig {
  readonly path: string | null
  readonly interval: number
}

export interface PasswordEntry {
  readonly file: string
  readonly user: string
}

export type PasswordConfig =
  | { readonly file: string }
  | { readonly htpasswd: PasswordEntry }
  | { readonly shadow: PasswordEntry }
  /** Known to the device alone: `upstream.auth` says how it is asked. */
  | { readonly device: true }

export interface TokensConfig {
  readonly store: 'file' | 'memory'
  readonly capacity: number
  readonly accessLifetime: number
  readonly refreshLifetime: number
  readonly rotateRefresh: boolean
  readonly refreshGrace: number
}

export interface LimitConfig {
  readonly requests: number
  readonly window: number
  readonly per: 'client' | 'grant' | 'device'
}

export interface LimitsConfig {
  readonly api: LimitConfig
  readonly oauth: LimitConfig
  readonly maxKeys: number
  readonly ietfHeaders: boolean
}

export interface OauthConfig {
  /** `off`, or the path at which clients may revoke tokens (RFC 7009). */
  readonly revocationPath: string
}

export interface LogConfig {
  readonly level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
  readonly format: 'auto' | 'json' | 'pretty'
  readonly access: boolean
}
