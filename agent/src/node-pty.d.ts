// The native part of node-pty, which has no types of its own; `pty.ts` says why it is used without the rest.
declare module '@lydell/node-pty/requireBinary.js' {
  export interface NativePty {
    open(
      columns: number,
      rows: number,
    ): { readonly master: number; readonly slave: number; readonly pty: string }
    resize(fd: number, columns: number, rows: number): void
  }
  export function requireBinary(file: 'pty.node'): NativePty
}
