import { dirname, join, resolve } from 'node:path'

/** A path of the configuration or of the command line. */
export interface NeededPath {
  readonly path: string
  /** `folder`: the path and all in it. `file`: all of its folder, so that a replaced file is noticed. */
  readonly kind: 'file' | 'folder'
  readonly write: boolean
}

/** What a program needs: these paths, or every path, as a command does that a user types. */
export type Needs = readonly NeededPath[] | 'every path'

/** The parts of the process that decide about Node's permission model. */
export interface PermissionedProcess {
  /** Undefined without `--permission`: then everything is allowed. */
  readonly permission: Pick<NodeJS.ProcessPermission, 'has' | 'drop'> | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Replaces the program in this process. */
  readonly restart: (env: Record<string, string | undefined>) => void
}

/**
 * Restarts the program, in its process, with the permissions that it lacks: Node can give none to a running program. Does nothing if
 * it has them, if it must not start programs, or if a restart changed nothing. A start of the service with all files in their usual folders needs no
 * restart, which takes 20 ms.
 */
export function ensurePermissions(needs: Needs, { permission, env, restart }: PermissionedProcess): void {
  if (permission === undefined || !permission.has('child')) return
  const missing =
    needs === 'every path' ? everyPath(permission) : needs.flatMap((need) => flags(need, permission))
  const given = env.NODE_OPTIONS ?? ''
  const added = [...new Set(missing)].filter((flag) => !given.includes(flag))
  if (added.length > 0) restart({ ...env, NODE_OPTIONS: [given, ...added].join(' ').trim() })
}

/** Gives up the permission to start programs, and with it the restart. */
export function endRestarts({ permission }: PermissionedProcess): void {
  permission?.drop('child')
}

type Permission = NonNullable<PermissionedProcess['permission']>

function everyPath(permission: Permission): readonly string[] {
  return permission.has('fs.read') && permission.has('fs.write')
    ? []
    : ['--allow-fs-read=*', '--allow-fs-write=*']
}

function flags({ path, kind, write }: NeededPath, permission: Permission): readonly string[] {
  const folder = resolve(kind === 'file' ? dirname(path) : path)
  const within = join(folder, 'any')
  // Node takes a path that does not exist yet for a file. The second form grants what will be in it.
  const forms = [folder, join(folder, '*')].map(quoted)
  return [
    ...(permission.has('fs.read', within) ? [] : forms.map((form) => `--allow-fs-read=${form}`)),
    ...(!write || permission.has('fs.write', within) ? [] : forms.map((form) => `--allow-fs-write=${form}`)),
  ]
}

/** A value in NODE_OPTIONS, which separates its options by spaces. */
function quoted(path: string): string {
  return /[\s"\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path
}
