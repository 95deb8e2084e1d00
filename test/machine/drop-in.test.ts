import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { runningTest } from '../support/running-test.ts'
import { isInstalled, type Run, run } from '../support/tools.ts'
import { addCheckout, addDevice, LIBRARIES, type Operator, operatorOf, PASSWORD } from './equipment.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { PROCESSOR } from './made-once.ts'

const TOOLS = ['systemd-nspawn', 'nsenter', 'unshare', 'ip']

const INSTALL = shellBlock('docs/installing.md', 'useradd')
const START = shellBlock('docs/installing.md', 'asks twice')
const PORT_443 = shellBlock('docs/installing.md', 'enable --now postern.socket')
const DROP_IN = shellBlock('docs/installing.md', 'init --drop-in')
const LOOK = shellBlock('docs/installing.md', 'cgroup.procs')

const MACHINE = '192.0.2.1'
const DEVICE = '192.0.2.10'
/** Answers as the device does, and is in no configuration. */
const OTHER = '192.0.2.99'
const CLIENT = '192.0.2.200'

/** The host of device and clients: a network of its own, with a cable to the machine. */
let neighbour: ChildProcess
let machine: Machine
let type: Operator['type']

async function prepare(): Promise<void> {
  const root = await minimalDebian()
  await addCheckout(root)
  writeFileSync(join(root, 'etc/resolv.conf'), 'nameserver 192.0.2.53\nnameserver 127.0.0.53\n')
  writeFileSync(
    join(root, 'etc/hosts'),
    `127.0.0.1 localhost\n${DEVICE} device.example\n127.0.0.1 own.example\n`,
  )
  addDevice(root)
  writeFileSync(
    join(root, 'etc/systemd/system/probe.service'),
    '[Service]\nType=oneshot\nIPAddressDeny=any\nExecStart=curl -sS -m 2 http://127.0.0.1:8080/\n',
  )
  machine = await bootMachine(root, { filtersPackets: true })
  ;({ type } = operatorOf(machine))
  neighbour = await startNeighbour()
  await layCable()
  await type(LIBRARIES)
  await type(replaceIn(INSTALL, 'postern-linux-x64', `postern-linux-${PROCESSOR}`))
  await type(START, `${PASSWORD}\n`)
}

/** Starts a server on every address of a network of its own, port 80. Its process is that network. */
async function startNeighbour(): Promise<ChildProcess> {
  const server =
    "require('node:http').createServer((_, res) => res.end('from outside\\n')).listen(80, '0.0.0.0', () => console.log('up'))"
  const host = spawn('unshare', ['--net', process.execPath, '-e', server], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  closeLater(() => void host.kill('SIGKILL'))
  await once(host.stdout, 'data')
  return host
}

/** Lays the cable between the machine and its neighbour. A reboot takes it away. */
async function layCable(): Promise<void> {
  const cable = `link add cable type veth peer name cable netns ${neighbour.pid}`
  for (const args of [cable, `addr add ${MACHINE}/24 dev cable`, 'link set cable up']) {
    expect(await once(machine.spawnBeside(['ip', ...args.split(' ')]), 'exit')).toEqual([0, null])
  }
  const addresses = [DEVICE, OTHER, CLIENT].map((address) => `ip addr add ${address}/24 dev cable`)
  const end = await inNetwork(neighbour, [...addresses, 'ip link set cable up'].join(' && '))
  expect(end).toMatchObject({ code: 0 })
}

function inNetwork({ pid }: ChildProcess, command: string, input = ''): Promise<Run> {
  return run('nsenter', ['--target', String(pid), '--net', 'sh', '-c', command], { input, timeout: 60_000 })
}

/** A client on another machine, which gives up after 5 s: it prints the body, or how curl ended. */
async function outside(address: string, args = '', input = ''): Promise<string> {
  const curl = `curl -ksS -m 5 --interface ${CLIENT} ${address} ${args}`
  const { code, stdout } = await inNetwork(neighbour, curl, input)
  return code === 0 ? stdout : `curl: ${code}`
}

/** Edits a line of the configuration. */
const edit = (from: string, to: string): Promise<string> =>
  type(`grep -q '${from}' /etc/postern/postern.yaml && sed -i 's|${from}|${to}|' /etc/postern/postern.yaml`)

/** Whether systemd filters packets here at all; it says nothing if it does not. */
async function needsFilter(): Promise<void> {
  if ((await machine.run('systemctl start probe')).code === 0) {
    runningTest()?.skip(
      'systemd cannot filter packets here: it takes cgroup v2 and a kernel with CONFIG_CGROUP_BPF',
    )
  }
}

describe('The unit', () => {
  beforeAll(async () => {
    if (process.getuid?.() === 0 && ['mmdebstrap', ...TOOLS].every(isInstalled)) await prepare()
  }, 900_000)

  it('H344 starts no program from what the service can write, and refuses calls that it does not use', async () => {
    needsMachine(...TOOLS)
    // io_uring_setup has the same number everywhere. Without the filter it fails with EFAULT here.
    const tries = `#!/bin/sh
for d in /var/lib/postern /tmp /var/tmp /dev/shm; do
  cp /bin/true $d/tried && chmod 700 $d/tried || echo "cannot write $d"
  $d/tried 2>/dev/null && echo "$d starts programs"
  rm -f $d/tried
done
/bin/true && echo "the system's programs start"
perl -e 'syscall(425, 1, 0); print "io_uring: $!\\n"'
`
    writeFileSync(join(machine.root, 'usr/local/bin/tries'), tries, { mode: 0o755 })
    const folder = '/run/systemd/system/postern.service.d'
    await type(
      `mkdir -p ${folder} && printf '[Service]\\nExecStartPre=/usr/local/bin/tries\\n' > ${folder}/tries.conf && systemctl daemon-reload`,
    )
    await type('systemctl restart postern')
    const printed = await type('journalctl --sync; journalctl -u postern -t tries -o cat')
    expect(printed).toBe("the system's programs start\nio_uring: Operation not permitted\n")
    await type(`rm -r ${folder} && systemctl daemon-reload && systemctl restart postern`)
  })

  it('H346 prints no drop-in while clients would be shut out', async () => {
    needsMachine(...TOOLS)
    const { code, stdout, stderr } = await machine.run('postern init --drop-in')
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('set it to fd:3 and start postern.socket')
  })

  it('H345 with the drop-in serves a client of another address, and reaches the device but nothing else', async () => {
    needsMachine(...TOOLS)
    await needsFilter()
    await edit('http://127.0.0.1:8080', `http://${DEVICE}`)
    await edit('^  address: auto$', '  address: fd:3')
    await type(PORT_443)
    const look = (address: string) => machine.run(replaceIn(LOOK, OTHER, address))
    expect(await look(OTHER)).toMatchObject({ code: 0, stdout: 'from outside\n' })

    await type(DROP_IN)
    expect(await look(OTHER)).toMatchObject({ code: 28, stdout: '' })
    expect(await look(DEVICE)).toMatchObject({ code: 0, stdout: 'from outside\n' })

    const form = '-d grant_type=password --data-urlencode password@-'
    const token = JSON.parse(await outside(`https://${MACHINE}/oauth/token`, form, PASSWORD)).access_token
    const get = () => outside(`https://${MACHINE}/`, '-H @-', `Authorization: Bearer ${token}\n`)
    expect(await get()).toBe('from outside\n')
    await type(
      'systemctl reload postern && postern healthy --ready && postern status && postern check --quiet',
    )
    await machine.reboot()
    await layCable()
    await type('systemctl is-system-running --wait; systemctl start postern')
    expect(await get()).toBe('from outside\n')
    expect(await look(OTHER)).toMatchObject({ code: 28 })
    expect(await type('systemd-analyze security --no-pager postern')).toMatch(
      /Overall exposure level .*: (?:0\.\d|1\.0) /,
    )
  })

  it('H346 starts with an admin page on the network, which is out of reach until its clients are taken in', async () => {
    needsMachine(...TOOLS)
    await needsFilter()
    await edit('  # address: 127.0.0.1:9464', `  address: ${MACHINE}:9464\\n  allow: [${CLIENT}, ${MACHINE}]`)
    const { code, stderr } = await machine.run(DROP_IN)
    expect([code, stderr]).toEqual([1, expect.stringContaining(`left out: admin.address: ${MACHINE}:9464`)])
    await type('systemctl daemon-reload && systemctl restart postern && postern healthy --ready')
    const page = (): Promise<string> => outside(`http://${MACHINE}:9464/healthz`)
    expect(await page()).toBe('curl: 28')
    await type(
      "sed -i 's/^#IPAddressAllow/IPAddressAllow/' /etc/systemd/system/postern.service.d/addresses.conf",
    )
    await type('systemctl daemon-reload && systemctl restart postern')
    expect(await page()).toContain('"ok"')
    await type(`sed -i '/${MACHINE}:9464/d; /^  allow: /d' /etc/postern/postern.yaml`)
  })

  it('H345 allows the nameservers; a name that leads to this machine needs no line', async () => {
    needsMachine(...TOOLS)
    await edit(`http://${DEVICE}`, 'http://own.example:8080')
    expect(await type("postern init --drop-in | grep -v '^#'")).toBe(
      '\n[Service]\nIPAddressDeny=any\nIPAddressAllow=localhost\n\nIPAddressAllow=192.0.2.53\n\n\n\n',
    )
  })

  it('H346 names the addresses that a name has, to take in by hand, and the block of the page stops', async () => {
    needsMachine(...TOOLS)
    await edit('http://own.example:8080', 'http://device.example')
    const before = await type('systemctl show -P InvocationID postern')
    const { code, stderr } = await machine.run(DROP_IN)
    expect([code, stderr]).toEqual([1, expect.stringContaining('upstream.url: device.example is a name')])
    expect(await type('systemctl show -P InvocationID postern')).toBe(before)
    expect(await type("grep '^#IP' /etc/systemd/system/postern.service.d/addresses.conf")).toBe(
      `#IPAddressAllow=${DEVICE}\n`,
    )
  })

  it("H346 would shut out the clients of the service's own socket: why nothing is printed for it", async () => {
    needsMachine(...TOOLS)
    await needsFilter()
    await edit('  address: fd:3', '  address: 0.0.0.0:8443')
    const folder = '/etc/systemd/system/postern.service.d'
    await type(
      `systemctl stop postern.socket && rm ${folder}/addresses.conf && systemctl daemon-reload && systemctl restart postern`,
    )
    expect(await outside(`https://${MACHINE}:8443/`, "-o /dev/null -w '%{http_code}'")).toBe('401')
    await type(
      `printf '[Service]\\nIPAddressDeny=any\\nIPAddressAllow=localhost\\n' > ${folder}/addresses.conf`,
    )
    await type('systemctl daemon-reload && systemctl restart postern')
    expect(await outside(`https://${MACHINE}:8443/`, "-o /dev/null -w '%{http_code}'")).toBe('curl: 28')
  })
})
