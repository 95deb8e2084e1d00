import { expect, it } from 'vitest'
import { endRestarts, ensurePermissions, type PermissionedProcess } from '../../src/system/permissions.ts'

type Grants = { readonly reads: string; readonly writes: string; readonly child?: boolean }

/** A process with permission for everything below two folders. Collects the NODE_OPTIONS of each restart. */
function started({ reads, writes, child = true }: Grants, options?: string) {
  const restarts: (string | undefined)[] = []
  const dropped: string[] = []
  const permissioned: PermissionedProcess = {
    permission: {
      has: (scope, path) =>
        scope === 'child' ? child : path?.startsWith(scope === 'fs.read' ? reads : writes) === true,
      drop: (scope) => dropped.push(scope),
    },
    env: { LANG: 'C', NODE_OPTIONS: options },
    readOutside: () => undefined,
    lookOutside: () => undefined,
    restart: ({ LANG, NODE_OPTIONS }) => {
      expect(LANG).toBe('C')
      restarts.push(NODE_OPTIONS)
    },
  }
  return { permissioned, restarts, dropped }
}

const file = (path: string) => ({ path, kind: 'file', write: false }) as const
const folder = (path: string) => ({ path, kind: 'folder', write: true }) as const
const USUAL = { reads: '/etc/postern/', writes: '/var/lib/postern/' }

it('files in permitted folders need no restart', () => {
  const { permissioned, restarts } = started({ reads: '/', writes: '/var/lib/postern/' })
  ensurePermissions([file('/etc/postern/password'), folder('/var/lib/postern')], permissioned)
  expect(restarts).toEqual([])
})

it('a file elsewhere needs no more than itself, once, behind the options that were there', () => {
  const { permissioned, restarts } = started(USUAL, '--max-old-space-size=384')
  ensurePermissions(
    [file('/srv/a.pem'), file('/b.pem'), file('/srv/a.pem'), file('/etc/postern/c')],
    permissioned,
  )
  expect(restarts).toEqual(['--max-old-space-size=384 --allow-fs-read=/srv/a.pem --allow-fs-read=/b.pem'])
})

it('a socket elsewhere needs both permissions for itself', () => {
  const { permissioned, restarts } = started(USUAL)
  ensurePermissions([{ ...file('/run/p.sock'), write: true }], permissioned)
  expect(restarts).toEqual(['--allow-fs-read=/run/p.sock --allow-fs-write=/run/p.sock'])
})

it('a flag that is the beginning of another is not taken for it', () => {
  const { permissioned, restarts } = started(USUAL, '--allow-fs-read=/srv/key.pem')
  ensurePermissions([file('/srv/key')], permissioned)
  expect(restarts).toEqual(['--allow-fs-read=/srv/key.pem --allow-fs-read=/srv/key'])
})

it('a restart that would close a passed socket is refused with the missing flags', () => {
  const { permissioned, restarts } = started(USUAL, '--max-old-space-size=384')
  const activated = { ...permissioned, hasPassedSocket: true }
  expect(() => ensurePermissions([file('/srv/a b')], activated)).toThrow(
    'a socket that the service manager passes does not survive the restart that more permissions need; ' +
      'add --allow-fs-read="/srv/a b" to NODE_OPTIONS in the unit',
  )
  expect(() => ensurePermissions([file('/etc/postern/c')], activated)).not.toThrow()
  expect(restarts).toEqual([])
})

it('a folder that is written needs both permissions, and a path with spaces and quotes is quoted', () => {
  const { permissioned, restarts } = started(USUAL)
  ensurePermissions([folder('/a "b"\\c')], permissioned)
  const forms = ['"/a \\"b\\"\\\\c"', '"/a \\"b\\"\\\\c/*"']
  expect(restarts).toEqual([
    [
      ...forms.map((form) => `--allow-fs-read=${form}`),
      ...forms.map((form) => `--allow-fs-write=${form}`),
    ].join(' '),
  ])
})

it('a command of a user needs every path and a thread', () => {
  const { permissioned, restarts } = started(USUAL)
  ensurePermissions('everything', permissioned)
  expect(restarts).toEqual(['--allow-fs-read=* --allow-fs-write=* --allow-worker'])
})

it('a restart that gave nothing is not repeated', () => {
  const { permissioned, restarts } = started(USUAL, '--allow-fs-read=* --allow-fs-write=* --allow-worker')
  ensurePermissions('everything', permissioned)
  expect(restarts).toEqual([])
})

it('a program that must not start others, or has no permission model, goes on', () => {
  const { permissioned, restarts } = started({ ...USUAL, child: false })
  ensurePermissions('everything', permissioned)
  ensurePermissions('everything', { ...permissioned, permission: undefined })
  endRestarts({ ...permissioned, permission: undefined })
  expect(restarts).toEqual([])
})

it('the permission to start programs is given up', () => {
  const { permissioned, dropped } = started(USUAL)
  endRestarts(permissioned)
  expect(dropped).toEqual(['child'])
})

it('a path with an asterisk is refused, because it would permit more than itself', () => {
  const { permissioned, restarts } = started(USUAL)
  expect(() => ensurePermissions([folder('/srv/x*y')], permissioned)).toThrow(
    "/srv/x*y: Node's permission model takes * for any text; use a path without it",
  )
  expect(restarts).toEqual([])
})

it('a folder above a permitted one is permitted itself', () => {
  const { permissioned, restarts } = started(USUAL, '--allow-fs-read=/srv/etc --allow-fs-read=/srv/*')
  ensurePermissions([{ ...folder('/srv'), write: false }], permissioned)
  expect(restarts).toEqual(['--allow-fs-read=/srv/etc --allow-fs-read=/srv/* --allow-fs-read=/srv'])
})
