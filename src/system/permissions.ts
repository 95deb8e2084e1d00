import { join, resolve } from 'node:path'
import { SetupError } from './setup-error.ts'

/** A path of the configuration or of the command line. */
export interface NeededPath {
  readonly path: string
  /**
   * `folder`: the path and all in it. `file`: the path alone, which need not exist. A file that replaces it has the permission,
   * too; `watchFile` notices it by polling, because it may not watch the folder.
   */
  readonly kind: 'file' | 'folder'
  readonly write: boolean
}

/**
 * What a program needs. `thread`: some password hashes are computed in one. `everything`: for commands that a user types, which may
 * read and write what the user may, and start threads.
 */
export type Needs = readonly (NeededPath | 'thread')[] | 'everything'

/** The parts of the process that decide about Node's permission model. */
export interface PermissionedProcess {
  /** Undefined without `--permission`: then everything is allowed. */
  readonly permission: Pick<NodeJS.ProcessPermission, 'has' | 'drop'> | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether the service manager has passed a listening socket. Node closes it at a restart. */
  readonly hasPassedSocket?: boolean
  /** Reads a file without the permission for it, by another program. Undefined if that cannot read it, or it is no text. */
  readonly readOutside: (path: string) => string | undefined
  /** Replaces the program in this process. */
  readonly restart: (env: Record<string, string | undefined>) => void
}

/**
 * Restarts the program in its own process (`execve`) with the permissions that it lacks. Node cannot grant them at run time.
 * Returns if nothing is missing, if `--allow-child-process` is absent, or if the last restart did not help. The usual folders
 * need no restart, which costs a second start of Node. Throws a `SetupError` with the missing flags if the restart would close a passed socket.
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

/** Whether a restart can still come. */
export function mayRestart({ permission }: Pick<PermissionedProcess, 'permission'>): boolean {
  return permission?.has('child') === true
}

/** Gives up the permission to start programs, and with it the restart. */
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
  // Node takes a folder that does not exist yet for a file. The second form grants what will be in it.
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

/** A value in NODE_OPTIONS, which separates its options by spaces. */
function quoted(path: string): string {
  return /[\s"\\]/.test(path) ? `"${path.replace(/["\\]/g, '\\$&')}"` : path
}
