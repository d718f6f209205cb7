package main

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// stampedLog writes the time at which a line begins before each line, as the files of a kubelet have it.
type stampedLog struct {
	file     *os.File
	isInLine bool
}

func (l *stampedLog) Write(text []byte) (int, error) {
	var stamped bytes.Buffer
	for line := range bytes.Lines(text) {
		if !l.isInLine {
			stamped.WriteString(time.Now().Format(time.RFC3339Nano) + " ")
		}
		stamped.Write(line)
		l.isInLine = !bytes.HasSuffix(line, []byte("\n"))
	}
	_, err := l.file.Write(stamped.Bytes())
	return len(text), err
}

// linesSince gives the lines of a stampedLog that begin at that time or later, without their times.
func linesSince(path string, since time.Time) ([]byte, error) {
	stamped, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	for line := range bytes.Lines(stamped) {
		stamp, text, _ := bytes.Cut(line, []byte(" "))
		begun, err := time.Parse(time.RFC3339Nano, string(stamp))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !begun.Before(since) {
			lines.Write(text)
		}
	}
	return lines.Bytes(), nil
}
