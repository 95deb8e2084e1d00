import { existsSync, mkdirSync, rmSync, symlinkSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Upgrade } from './upgrading.ts'

/**
 * When the power is cut. `before`: a pattern of the shell for the command that dpkg, or a script of the package, is about to run.
 * `halfway`: half of the files are unpacked. `file`: this file of the machine, in this folder, changes for the n-th time.
 */
export type Cut =
  | { readonly before: string }
  | 'halfway'
  | { readonly folder: string; readonly file: RegExp; readonly nth: number }

/** The programs that dpkg and the scripts of the package call. */
const PROGRAMS =
  'dpkg-deb rm adduser chown chmod install deb-systemd-helper deb-systemd-invoke systemctl'.split(' ')

/** Stands before each program: says that the moment has come, and goes no further. */
const STEP = `#!/bin/sh
name=\${0##*/}
PATH=\${PATH#/root/steps:}
cut=$(cat /root/cut-before)
stop() { : > /root/moments/now; exec sleep infinity; }
case "$cut:$name $*" in halfway:dpkg-deb\\ --fsys-tarfile*) "$name" "$@" | head -c 60000000; stop ;; esac
case "$name $*" in $cut) stop ;; esac
exec "$name" "$@"
`

/** Installs a version, and cuts the power at that moment. The machine is on again when it resolves; `false`: the moment did not come. */
export async function cutDuring(
  { machine, packages, startDevice }: Upgrade,
  which: 'former' | 'present',
  cut: Cut,
): Promise<boolean> {
  const inside = (path: string): string => join(machine.root, 'root', path)
  if (!existsSync(inside('steps'))) {
    for (const folder of ['steps', 'moments']) mkdirSync(inside(folder))
    writeFileSync(inside('steps/step'), STEP, { mode: 0o755 })
    for (const program of PROGRAMS) symlinkSync('step', inside(`steps/${program}`))
  }
  const pattern = cut === 'halfway' ? cut : 'before' in cut ? cut.before : 'never'
  writeFileSync(inside('cut-before'), `${pattern}\n`)
  rmSync(inside('moments/now'), { force: true })
  const { promise: moment, resolve } = Promise.withResolvers<true>()
  const [folder, file, nth] =
    typeof cut === 'object' && 'folder' in cut
      ? [join(machine.root, cut.folder), cut.file, cut.nth]
      : [inside('moments'), /^now$/, 1]
  let seen = 0
  const watcher = watch(folder, (_, name) => {
    if (file.test(name ?? '') && ++seen === nth) resolve(true)
  })
  const flags = '--force-unsafe-io --force-confold'
  const install = machine.run(`PATH=/root/steps:$PATH dpkg ${flags} -i ${packages[which]}`).then(
    () => false,
    () => false, // it is killed with the machine
  )
  try {
    return await Promise.race([moment, install])
  } finally {
    watcher.close()
    await machine.cutPower()
    await install
    await startDevice()
  }
}
