import { flow } from './first-configuration.ts'
import type { ConfigWarning, WarningRule } from './insecure-settings.ts'
import { isMapping, valueAt, type YamlMapping, type YamlValue } from './yaml.ts'

// Before 1.0 the kind of `upstream.auth` was a key with the rest below it: `auth: {basic: {user: admin}}`. It is read until 2.0.

const KINDS = ['basic', 'digest', 'form', 'session']
/** Kinds whose keys all stand beside `kind` now. */
const FLAT = ['basic', 'digest']
/** What stood below each kind, and stands beside `kind` now. */
const MOVED = ['user', 'password', 'check_path']

type Path = readonly string[]

/** A service whose `auth` has the former spelling. */
interface Former {
  /** The path of its `auth`. */
  readonly path: Path
  readonly kind: string
  /** The key that shows it, such as `upstream.auth.basic`. */
  readonly key: string
}

/** Whether these keys below `auth` are in the former spelling. */
export function isFormer([kind = '', key = '']: Path): boolean {
  return FLAT.includes(kind) || (KINDS.includes(kind) && MOVED.includes(key))
}

/** The former path of a key below `auth`. */
export function withKind(present: Path, kind: string): Path {
  return present.toSpliced(authIn(present) + 1, 0, kind)
}

/** Whether a path is of `auth` of a service, or below it. */
export function isInAuth(path: Path): boolean {
  return authIn(path) >= 0
}

export function isWithin(path: Path, section: Path): boolean {
  return section.every((key, at) => path[at] === key)
}

/** Every key of the main service in the former spelling. */
export function formerKeys(): readonly Path[] {
  const below = [['user'], ['password'], ['password', 'file'], ['check_path']]
  return KINDS.flatMap((kind) => [
    ...(FLAT.includes(kind) ? [['upstream', 'auth', kind]] : []),
    ...below
      .filter(([key]) => key !== 'check_path' || kind !== 'session')
      .map((path) => ['upstream', 'auth', kind, ...path]),
  ])
}

/** Where `auth` of a service stands in a path; -1 if the path is of something else. */
function authIn(path: Path): number {
  const at = path[1] === 'routes' ? 3 : 1
  return path[0] === 'upstream' && path[at] === 'auth' ? at : -1
}

/** A value from outside the file. `rank` is the precedence of its source. */
interface Written {
  readonly path: Path
  readonly value: YamlValue
  readonly rank: number
}

const FILE_RANK = 1

/** What is wrong with a spelling. `service`: the path of its `auth`. `path`: as it is written. */
interface Problem {
  readonly service: Path
  readonly path: Path
  readonly message: string
}

export type AuthSpelling = ReturnType<typeof createAuthSpelling>

/** Turns the former spelling of one configuration, from all its sources, into the present one, and knows what was written. */
export function createAuthSpelling() {
  const former = new Map<string, Former>()
  const present = new Map<string, string>()
  /** The last kind that was written as a key, and the rank of its source. */
  const kinds = new Map<string, { readonly kind: string; readonly rank: number }>()
  let problems: readonly Problem[] = []
  /** The rank of the source that is read, and the services of which it replaces what sources of lower rank have. */
  let rank = 0
  let replaced: Path[] = []

  function wrong(service: Path, keys: Path, message: string): void {
    problems = [...problems, { service, path: [...service, ...keys], message }]
  }

  /** Nothing of what was read for a service is in effect. */
  function forget(path: Path): void {
    for (const map of [former, present, kinds]) map.delete(path.join('.'))
    problems = problems.filter(({ service }) => service.join('.') !== path.join('.'))
  }

  /** As with every choice, another kind from a source of higher rank replaces the whole; from one of the same rank it is a problem. */
  function noteKind(path: Path, kind: string): void {
    const service = path.join('.')
    const held = kinds.get(service)
    if (held !== undefined && held.kind !== kind && !present.has(service)) {
      if (rank > held.rank) {
        forget(path)
        replaced.push(path)
      } else wrong(path, [kind], `must not be set together with ${held.kind}; keep one of the two`)
    }
    kinds.set(service, { kind, rank })
  }

  /** The value of `auth` in the present spelling. `isWhole`: it will get no other keys. */
  function rewritten(auth: YamlMapping, path: Path, isWhole: boolean): YamlMapping {
    const service = path.join('.')
    // Another source may have the former spelling: then this is what was made of it.
    if (isWhole && former.has(service)) return auth
    const [kind, other] = KINDS.filter((each) => Object.hasOwn(auth, each))
    const beside = ['kind', ...MOVED].find((each) => Object.hasOwn(auth, each))
    if (beside !== undefined) present.set(service, [...path, beside].join('.'))
    if (kind === undefined) return auth
    if (!isWhole) noteKind(path, kind)
    const { [kind]: below, ...rest } = auth
    const moved = isMapping(below) ? MOVED.find((each) => Object.hasOwn(below, each)) : undefined
    const hasFormer = FLAT.includes(kind) || moved !== undefined || (isWhole && beside === undefined)
    if (!hasFormer) return auth
    const key = [...path, kind, ...(FLAT.includes(kind) || moved === undefined ? [] : [moved])].join('.')
    former.set(service, { path, kind, key })
    if (other !== undefined) {
      wrong(path, [other], `must not be set together with ${kind}; keep one of the two`)
      return auth
    }
    if (beside !== undefined) return auth
    if (below === null || below === undefined) return { ...rest, kind }
    if (!isMapping(below)) {
      wrong(path, [kind], 'must be a mapping of keys')
      return auth
    }
    if (FLAT.includes(kind) && Object.hasOwn(below, 'kind')) {
      wrong(path, [kind, 'kind'], `must be left out, because the kind is ${kind}`)
      return auth
    }
    if (FLAT.includes(kind)) return { ...rest, kind, ...below }
    const entries = Object.entries(below)
    const own = entries.filter(([name]) => !MOVED.includes(name))
    return {
      ...rest,
      kind,
      ...Object.fromEntries(entries.filter(([name]) => MOVED.includes(name))),
      [kind]: Object.fromEntries(own),
    }
  }

  function inService(service: YamlValue, path: Path, isWhole: boolean): YamlValue {
    if (!isMapping(service)) return service
    if (!isMapping(service.auth)) {
      if (Object.hasOwn(service, 'auth')) forget([...path, 'auth'])
      return service
    }
    return { ...service, auth: rewritten(service.auth, [...path, 'auth'], isWhole) }
  }

  function inTree(tree: YamlValue, isWhole: boolean): YamlValue {
    if (!isMapping(tree) || !isMapping(tree.upstream)) return tree
    const upstream = inService(tree.upstream, ['upstream'], isWhole) as YamlMapping // of a mapping it makes a mapping
    if (!isMapping(upstream.routes)) return { ...tree, upstream }
    const routes = Object.entries(upstream.routes).map(([name, service]) => [
      name,
      inService(service, ['upstream', 'routes', name], isWhole),
    ])
    return { ...tree, upstream: { ...upstream, routes: Object.fromEntries(routes) } }
  }

  function inPresent<Given extends Written>(override: Given): Given {
    const { path, value } = override
    const at = authIn(path)
    if (at < 0) {
      // A section above `auth`, or something else.
      const whole = path.reduceRight<YamlValue>((inner, key) => ({ [key]: inner }), value)
      return { ...override, value: valueAt(inTree(whole, false), path) ?? value }
    }
    const service = path.slice(0, at + 1)
    const auth = path.slice(at + 1).reduceRight<YamlValue>((inner, key) => ({ [key]: inner }), value)
    if (!isMapping(auth)) {
      forget(service)
      return override
    }
    const known = former.get(service.join('.'))
    const next = rewritten(auth, service, false)
    return next === auth && known === former.get(service.join('.'))
      ? override
      : { ...override, path: service, value: next }
  }

  return {
    /** The tree of the file. */
    ofFile(tree: YamlMapping): YamlMapping {
      rank = FILE_RANK
      return inTree(tree, false) as YamlMapping // of a mapping it makes a mapping
    },
    /** A value from outside the file, after what it replaces. Call it in the order of the sources. */
    ofOverride<Given extends Written>(override: Given): readonly Given[] {
      rank = override.rank
      replaced = []
      const next = inPresent(override)
      return [...replaced.map((path) => ({ ...override, path, value: 'off' })), next]
    },
    /** The tree of all sources. */
    ofAll: (tree: YamlValue): YamlValue => inTree(tree, true),
    /** What is wrong with the spellings, each at the path as it is written. Call it when all sources are read. */
    problems() {
      const both = [...former].flatMap(([service, { path, key }]) => {
        const other = present.get(service)
        if (other === undefined) return []
        return {
          service: path,
          path,
          message: `must have one spelling, and has ${key}, which is the former one, and ${other}; keep the present one`,
        }
      })
      return [...problems, ...both]
    },
    /** The path of a key as it is written. */
    writtenPath(path: Path): Path {
      const at = authIn(path)
      const found = at < 0 ? undefined : former.get(path.slice(0, at + 1).join('.'))
      if (found === undefined || path.length === at + 1) return path
      const [key = '', ...deeper] = path.slice(at + 1)
      if (key === found.kind) return path
      return [...found.path, found.kind, ...(key === 'kind' ? [] : [key, ...deeper])]
    },
    /** The services with the former spelling, each with the line to write instead: what changes, so that no secret is among them. */
    former(tree: YamlValue): readonly { readonly key: string; readonly line: string }[] {
      return [...former.values()].map(({ path }) => {
        const auth = valueAt(tree, path)
        const { form, session, ...moved } = isMapping(auth) ? auth : {}
        const kept = form === undefined ? (session === undefined ? '' : 'session') : 'form'
        const rest = kept === '' ? '' : `, and below it ${kept} with its other keys as they are`
        const line = `auth: ${flow(moved)}${rest}`
        return { key: path.join('.'), line }
      })
    },
  }
}

/** What was found in the former spelling, by the configuration that was made of it. */
const rememberedFormer = new WeakMap<object, ReturnType<AuthSpelling['former']>>()

export function rememberFormer(config: object, found: ReturnType<AuthSpelling['former']>): void {
  if (found.length > 0) rememberedFormer.set(config, found)
}

/** For `postern check` and the log: see `ConfigWarning`. */
export const FORMER_RULE: WarningRule & { readonly find: (config: object) => readonly ConfigWarning[] } = {
  about: '`upstream.auth` in its former spelling, which is read until 2.0: the warning has the line to write',
  find: (config) =>
    (rememberedFormer.get(config) ?? []).map(({ key, line }) => ({
      key,
      reason: 'its spelling is the former one, with the kind as a key',
      meaning: 'Postern 2.0 will not read it',
      remedy: `write ${line}`,
      message: `${key} has its former spelling, which Postern 2.0 will not read`,
    })),
}
