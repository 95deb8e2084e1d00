import { createPathTable, isAmbiguousPath, pathOf } from './request-path.ts'

/** The permissions of the logins of one entry of `passwords`. */
export interface Scope {
  /** The name of the entry. */
  readonly name: string
  /** Undefined: every request is allowed. */
  readonly allows: Allows | undefined
  /** `allow` is on trial (`enforce: false`): a request or field that it would refuse is forwarded unchanged, and recorded. */
  readonly onTrial: boolean
}

/** The scopes by name. */
export type Scopes = ReadonlyMap<string, Scope>

/** Whether a request with this method and target is allowed. The method of a WebSocket handshake is `UPGRADE`. */
export type Allows = (method: string, target: string) => boolean

export const UPGRADE = 'UPGRADE'

/** Whether a method only reads, if the device follows RFC 9110 §9.2.1. */
export function isRead(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** The safe methods (RFC 9110 §9.2.1): a request with one of them changes nothing at the device. */
export const SAFE_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/** Whether a method is safe (RFC 9110 §9.2.1): GET, HEAD or OPTIONS. */
export function isSafe(method: string): boolean {
  return SAFE_METHODS.includes(method)
}

/** One entry of `allow`. Without `methods` it covers every method, but no upgrade; without `paths`, every path. */
export interface AllowRule {
  readonly methods?: readonly string[]
  readonly paths?: readonly string[]
}

/** The rules for which `allow: read` is the short form. */
const READ: readonly AllowRule[] = [{ methods: SAFE_METHODS }]

interface CompiledRule extends AllowRule {
  /** The path of the rule that covers a request; `/` for a rule without paths; undefined if the rule does not cover the request. */
  readonly covers: (method: string, target: string) => string | undefined
}

/**
 * Compiles the rules of `allow`. Like `public_paths`, paths are compared byte for byte as forwarded, without the query. No list of paths
 * covers an ambiguous path, which two parsers could read differently.
 */
export function compileRules(allow: 'read' | readonly AllowRule[]): readonly CompiledRule[] {
  return (allow === 'read' ? READ : allow).map((rule) => {
    const takes = rule.methods && new Set(rule.methods)
    const find = rule.paths && createPathTable(rule.paths.map((path) => [path, path] as const))
    return {
      ...rule,
      covers(method, target) {
        if (takes === undefined ? method === UPGRADE : !takes.has(method)) return undefined
        if (find === undefined) return '/'
        const path = pathOf(target)
        return isAmbiguousPath(path) ? undefined : find(path)
      },
    }
  })
}

/** Compiles `allow`: a request is allowed if one of its rules covers it. */
export function compileAllow(allow: 'read' | readonly AllowRule[]): Allows {
  const rules = compileRules(allow)
  return (method, target) => rules.some(({ covers }) => covers(method, target) !== undefined)
}

/** Writes a value for each name as text: `admin=12 monitor=17`. The value of the empty name stands alone. */
export function textOfNames(values: ReadonlyMap<string, string>): string {
  return [...values]
    .map(([name, value]) => (name === '' ? value : `${name}=${value}`))
    .sort()
    .join(' ')
}

/** Reads the text of `textOfNames`. */
export function namesInText(text: string): Map<string, string> {
  const entries = text.split(' ').filter((entry) => entry !== '')
  return new Map(
    entries.map((entry) => {
      const equals = entry.indexOf('=')
      return [entry.slice(0, Math.max(equals, 0)), entry.slice(equals + 1)]
    }),
  )
}

/** The key of the window that all logins of a name share (`per: name`). No address and no grant has it. */
export function windowOfName(name: string): string {
  return `name ${name}`
}

/**
 * The name in the id of a grant: `monitor` in `monitor.0123456789abcdef`. Empty for a grant of `password`, whose id is the
 * hexadecimal part alone.
 */
export function nameOfGrant(grant: string): string {
  const end = grant.indexOf('.')
  return end < 0 ? '' : grant.slice(0, end)
}
