// Writes what kubectl makes of each text of texts.txt: it reads a manifest by the same decoder.
//
//	cd "$(mktemp -d)" && cp REPOSITORY/test/agent/base/kubectl-yaml/main.go . && go mod init kubectl-yaml
//	go get k8s.io/apimachinery@v0.37.0 && go mod tidy
//	go run . <REPOSITORY/test/agent/base/kubectl-yaml/texts.txt >texts.txt
//
// A line is a text as JSON, `=>`, what kubectl makes of it (its documents as JSON, or `refused`), and, if Headgate makes
// something else of it, `=>` and that. Comments and the last part are copied.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

const arrow = " => "

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Println(line)
			continue
		}
		parts := strings.Split(line, arrow)
		var text string
		if err := json.Unmarshal([]byte(parts[0]), &text); err != nil {
			panic(err)
		}
		answer := []string{parts[0], read(text)}
		if len(parts) > 2 {
			answer = append(answer, parts[2])
		}
		fmt.Println(strings.Join(answer, arrow))
	}
}

func read(text string) string {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	documents := []json.RawMessage{}
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			all, err := json.Marshal(documents)
			if err != nil {
				panic(err)
			}
			return string(all)
		}
		if err != nil {
			return "refused"
		}
		if len(document) > 0 && string(document) != "null" {
			documents = append(documents, document)
		}
	}
}
