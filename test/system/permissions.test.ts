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

it('a file elsewhere needs its folder, once, behind the options that were there', () => {
  const { permissioned, restarts } = started(USUAL, '--max-old-space-size=384')
  ensurePermissions([file('/srv/keys/a.pem'), file('/srv/keys/b.pem'), file('/etc/postern/c')], permissioned)
  expect(restarts).toEqual(['--max-old-space-size=384 --allow-fs-read=/srv/keys --allow-fs-read=/srv/keys/*'])
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

it('a command of a user needs every path', () => {
  const { permissioned, restarts } = started(USUAL)
  ensurePermissions('every path', permissioned)
  expect(restarts).toEqual(['--allow-fs-read=* --allow-fs-write=*'])
})

it('a restart that gave nothing is not repeated', () => {
  const { permissioned, restarts } = started(USUAL, '--allow-fs-read=* --allow-fs-write=*')
  ensurePermissions('every path', permissioned)
  expect(restarts).toEqual([])
})

it('a program that must not start others, or has no permission model, goes on', () => {
  const { permissioned, restarts } = started({ ...USUAL, child: false })
  ensurePermissions('every path', permissioned)
  ensurePermissions('every path', { ...permissioned, permission: undefined })
  endRestarts({ ...permissioned, permission: undefined })
  expect(restarts).toEqual([])
})

it('the permission to start programs is given up', () => {
  const { permissioned, dropped } = started(USUAL)
  endRestarts(permissioned)
  expect(dropped).toEqual(['child'])
})
