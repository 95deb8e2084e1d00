import { join, resolve } from 'node:path'
import { SetupError } from './setup-error.ts'

/** A path from the configuration or the command line, and the access that it needs. */
export interface NeededPath {
  readonly path: string
  /**
   * `folder`: the path and everything in it. `file`: the path alone, which need not exist. The permission also covers a file that replaces
   * it; `watchFile` notices that by polling, because without permission for the folder it cannot watch it.
   */
  readonly kind: 'file' | 'folder'
  readonly write: boolean
}

/**
 * The permissions that the program needs. `thread`: a worker thread, in which some password hashes are computed. `everything`: all files
 * and threads, for commands that a user types: they may do what the user may.
 */
export type Needs = readonly (NeededPath | 'thread')[] | 'everything'

/** A file, a folder, or a symbolic link itself. */
export interface PathFacts {
  readonly uid: number
  readonly gid: number
  readonly mode: number
  /** The target of a symbolic link. */
  readonly link?: string | undefined
}

/** The parts of the process that the permissions depend on. */
export interface PermissionedProcess {
  /** Undefined if Node runs without `--permission`: then everything is allowed. */
  readonly permission: Pick<NodeJS.ProcessPermission, 'has' | 'drop'> | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** The service manager has passed a listening socket. Node closes it at a restart. */
  readonly hasPassedSocket?: boolean
  /** Reads a file through another program, which needs no permission of Node. Undefined if it cannot be read or is not text. */
  readonly readOutside: (path: string) => string | undefined
  /** What a path is, in the same way. Undefined if there is no such path. */
  readonly lookOutside: (path: string) => PathFacts | undefined
  /** Replaces the program in this process. */
  readonly restart: (env: Record<string, string | undefined>) => void
}

/**
 * Restarts the program in the same process (`execve`) with the permissions that it lacks: Node cannot grant permissions at run time. A
 * restart costs a second start of Node; the default folders need none. Returns if no permission is missing, if `--allow-child-process` is
 * absent, or if the last restart did not help. Throws a `SetupError` with the missing flags if a restart would close a passed socket.
 */
export function ensurePermissions(
  needs: Needs,
  { permission, env, hasPassedSocket, restart }: PermissionedProcess,
): void {
  if (permission === undefined || !mayRestart({ permission })) return
  const missing =
    needs === 'everything' ? everything(permission) : needs.flatMap((need) => flags(need, permission))
  const given = env.NODE_OPTIONS ?? ''
  const added = [...new Set(missing)].filter((flag) => !` ${given} `.includes(` ${flag} `))
  if (added.length === 0) return
  if (hasPassedSocket === true) {
    throw new SetupError(
      'a socket that the service manager passes does not survive the restart that more permissions need',
      { remedy: `add ${added.join(' ')} to NODE_OPTIONS in the unit` },
    )
  }
  restart({ ...env, NODE_OPTIONS: [given, ...added].join(' ').trim() })
}

/** Whether a restart is still possible. */
export function mayRestart({ permission }: Pick<PermissionedProcess, 'permission'>): boolean {
  return permission?.has('child') === true
}

/** Drops the permission to start programs, so no restart is possible any more. */
export function endRestarts({ permission }: Pick<PermissionedProcess, 'permission'>): void {
  permission?.drop('child')
}

type Permission = NonNullable<PermissionedProcess['permission']>

function everything(permission: Permission): readonly string[] {
  const all = permission.has('fs.read') && permission.has('fs.write')
  return [...(all ? [] : ['--allow-fs-read=*', '--allow-fs-write=*']), ...thread(permission)]
}

function thread(permission: Permission): readonly string[] {
  return permission.has('worker') ? [] : ['--allow-worker']
}

function flags(need: NeededPath | 'thread', permission: Permission): readonly string[] {
  if (need === 'thread') return thread(permission)
  const { path, kind, write } = need
  const whole = resolve(path)
  // Node takes a folder that does not exist yet for a file. The form with `*` covers its future content.
  const forms = (kind === 'folder' ? [whole, join(whole, '*')] : [whole]).map(quoted)
  const asked = kind === 'folder' ? join(whole, 'any') : whole
  const missing = [
    ...(permission.has('fs.read', asked) ? [] : forms.map((form) => `--allow-fs-read=${form}`)),
    ...(!write || permission.has('fs.write', asked) ? [] : forms.map((form) => `--allow-fs-write=${form}`)),
  ]
  if (missing.length > 0 && whole.includes('*')) {
    throw new SetupError(`${path}: Node's permission model takes * for any text; use a path without it`)
  }
  return missing
}

/** Quotes a path for NODE_OPTIONS, which separates options by spaces. */
function quoted(path: string): string {
  return /[\s"\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path
}
